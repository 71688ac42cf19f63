import { Type, type TInteger, type TObject, type TProperties, type TSchema, type TUnsafe } from '@sinclair/typebox';

export function oneOf<const Words extends readonly string[]>(words: Words, options: Record<string, unknown> = {}): TUnsafe<Words[number]> {
  return Type.Unsafe<Words[number]>({ type: 'string', enum: [...words], ...options });
}

/** The value, or null to clear the field. Gives better error sentences than a union. */
export function nullable<Schema extends TSchema>(schema: Schema): TUnsafe<Schema['static'] | null> {
  return Type.Unsafe<Schema['static'] | null>({ ...schema, type: [schema['type'] as string, 'null'] });
}

export function integer(minimum: number, maximum: number, description: string): TInteger {
  return Type.Integer({ minimum, maximum, description });
}

/** An object with these fields and no others. */
export function object<Fields extends TProperties>(fields: Fields): TObject<Fields> {
  return Type.Object(fields, { additionalProperties: false });
}

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

export const StrategySchema = object({
  type: oneOf(['linear', 'exponential'], { description: '`linear` waits the same time before each retry; `exponential` doubles it.' }),
  duration: integer(1, 86_400, 'Seconds before the first retry.'),
  retry_count: integer(0, 1000, 'Retries after the first attempt.'),
  max_seconds: Type.Optional(integer(1, 604_800, 'Cap of the exponential wait.')),
});

/** Rate limit of endpoints that set none themselves. */
export const RateLimitSchema = object({
  count: integer(0, 1_000_000, 'Requests to one endpoint in `duration`, of all agents together; 0 is no limit.'),
  duration: integer(1, 86_400, 'Seconds.'),
});

/** When the circuit breaker of an endpoint opens; fields left out default to the settings `circuit_breaker.*`. */
export const CircuitBreakerSchema = object({
  failure_threshold: Type.Optional(integer(0, 100, 'Percent of the requests that fail; 0: never.')),
  minimum_request_count: Type.Optional(integer(1, 1000, 'Requests below which nothing is decided.')),
  observability_window: Type.Optional(integer(1, 1440, 'Minutes over which requests are counted.')),
  error_timeout: Type.Optional(integer(1, 3600, 'Seconds until it is tried again; each further time twice as long.')),
});

/** How long finished events of a project are kept. */
export const RetentionSchema = object({
  days: integer(
    1,
    36_500,
    'Whole days that finished events, event deliveries and delivery attempts are kept, instead of `retention.days`.',
  ),
});
