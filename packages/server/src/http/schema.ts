import { Type, type TInteger, type TObject, type TProperties, type TSchema, type TUnsafe } from '@sinclair/typebox';

/** Schema of a string that is one of `words`. `options` adds keywords, for instance `description`. */
export function oneOf<const Words extends readonly string[]>(words: Words, options: Record<string, unknown> = {}): TUnsafe<Words[number]> {
  return Type.Unsafe<Words[number]>({ type: 'string', enum: [...words], ...options });
}

/** The value, or null to clear the field. Gives better error sentences than a union. */
export function nullable<Schema extends TSchema>(schema: Schema): TUnsafe<Schema['static'] | null> {
  return Type.Unsafe<Schema['static'] | null>({ ...schema, type: [schema['type'] as string, 'null'] });
}

/** Schema of a whole number; both limits are included. */
export function integer(minimum: number, maximum: number, description: string): TInteger {
  return Type.Integer({ minimum, maximum, description });
}

/** Schema of an object that rejects fields it does not list. */
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
