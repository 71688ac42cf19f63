import { Type, type TSchema, type TUnsafe } from '@sinclair/typebox';

export function oneOf<const Words extends readonly string[]>(words: Words, options: Record<string, unknown> = {}): TUnsafe<Words[number]> {
  return Type.Unsafe<Words[number]>({ type: 'string', enum: [...words], ...options });
}

/** The value, or null to clear the field. Gives better error sentences than a union. */
export function nullable<Schema extends TSchema>(schema: Schema): TUnsafe<Schema['static'] | null> {
  return Type.Unsafe<Schema['static'] | null>({ ...schema, type: [schema['type'] as string, 'null'] });
}

/** Allows no other fields. */
export const closed = { additionalProperties: false } as const;

export const Id = Type.String({
  pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
  'x-sentence': 'must be an id: a UUID in lower case',
});

export const Name = Type.String({ minLength: 1, maxLength: 200, pattern: '\\S', 'x-sentence': 'must not be blank' });

/** A name in messages: event type, owner id, idempotency key. */
export const Word = Type.String({
  minLength: 1,
  maxLength: 512,
  pattern: '^[^\\u0000-\\u001f\\u007f]*$',
  'x-sentence': 'must not contain control characters',
});

export const StrategySchema = Type.Object(
  {
    type: oneOf(['linear', 'exponential'], { description: '`linear` waits the same time before each retry; `exponential` doubles it.' }),
    duration: Type.Integer({ minimum: 1, maximum: 86_400, description: 'Seconds before the first retry.' }),
    retry_count: Type.Integer({ minimum: 0, maximum: 1000, description: 'Retries after the first attempt.' }),
    max_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 604_800, description: 'Cap of the exponential wait.' })),
  },
  closed,
);

/** Rate limit of endpoints that set none themselves. */
export const RateLimitSchema = Type.Object(
  {
    count: Type.Integer({
      minimum: 0,
      maximum: 1_000_000,
      description: 'Requests to one endpoint in `duration`, of all agents together; 0 is no limit.',
    }),
    duration: Type.Integer({ minimum: 1, maximum: 86_400, description: 'Seconds.' }),
  },
  closed,
);

/** When the circuit breaker of an endpoint opens; fields left out default to the settings `circuit_breaker.*`. */
export const CircuitBreakerSchema = Type.Object(
  {
    failure_threshold: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 100, description: 'Percent of the requests that fail; 0: never.' }),
    ),
    minimum_request_count: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1000, description: 'Requests below which nothing is decided.' }),
    ),
    observability_window: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1440, description: 'Minutes over which requests are counted.' }),
    ),
    error_timeout: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 3600, description: 'Seconds until it is tried again; each further time twice as long.' }),
    ),
  },
  closed,
);

/** How long finished events of a project are kept. */
export const RetentionSchema = Type.Object(
  {
    days: Type.Integer({
      minimum: 1,
      maximum: 36_500,
      description: 'Whole days that finished events, event deliveries and delivery attempts are kept, instead of `retention.days`.',
    }),
  },
  closed,
);
