import {
  Type,
  type TInteger,
  type TObject,
  type TOptional,
  type TProperties,
  type TSchema,
  type TUnsafe,
} from '@sinclair/typebox';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { didYouMean, GatewayError, type InvalidField } from '@gateway/core/errors';
import { clip, CONTROLS, isObject } from '@gateway/core/json';

const of = (description: string | undefined) => (description === undefined ? {} : { description });

export const string = (description?: string) => Type.String(of(description));
export const boolean = (description?: string) => Type.Boolean(of(description));
export const int = (description?: string) => Type.Integer(of(description));

/** `options` is the description, or keywords. */
export function oneOf<const Words extends readonly string[]>(
  words: Words,
  options: string | Record<string, unknown> = {},
): TUnsafe<Words[number]> {
  const keywords = typeof options === 'string' ? { description: options } : options;
  return Type.Unsafe<Words[number]>({ type: 'string', enum: [...words], ...keywords });
}

/** Null clears the field. Not a union, which would give worse error messages. */
export function nullable<Schema extends TSchema>(
  schema: Schema,
  description = schema.description,
): TUnsafe<Schema['static'] | null> {
  return Type.Unsafe<Schema['static'] | null>({
    ...schema,
    type: [schema['type'] as string, 'null'],
    ...(Array.isArray(schema['enum']) && { enum: [...(schema['enum'] as unknown[]), null] }),
    ...(description !== undefined && { description }),
  });
}

export function described<Schema extends TSchema>(schema: Schema, description: string): Schema {
  return { ...schema, description };
}

/** Inclusive limits. */
export function integer(minimum: number, maximum: number, description: string): TInteger {
  return Type.Integer({ minimum, maximum, description });
}

/** Rejects unlisted fields. */
export function object<Fields extends TProperties>(
  fields: Fields,
  options: { description?: string } = {},
): TObject<Fields> {
  return Type.Object(fields, { ...options, additionalProperties: false });
}

export function optional<Fields extends TProperties>(
  fields: Fields,
): { [Field in keyof Fields]: TOptional<Fields[Field]> } {
  return Type.Partial(Type.Object(fields)).properties as never;
}

/** Ignores fields that clients of similar APIs send and that can be omitted without harm. */
export function ignoring<Schema extends TSchema>(names: readonly string[], schema: Schema): Schema {
  return { ...schema, [IGNORED]: names };
}

/** As in responses, without request limits and form keywords. */
export function answered<Fields extends TProperties>(fields: Fields): Fields {
  const bare = Object.entries(fields).map(([name, { ...schema }]) => {
    for (const keyword of Object.keys(schema)) if (!ANSWERED.has(keyword)) delete schema[keyword];
    return [name, schema];
  });
  return Object.fromEntries(bare) as Fields;
}

const ANSWERED = new Set([
  ...['type', 'description', 'enum', 'items', 'properties', 'required', 'additionalProperties'],
]);

/** For the OpenAPI document and the client. Each name has only one schema. */
export function named<Schema extends TSchema>(title: string, schema: Schema): Schema {
  return { ...schema, title };
}

export function namedObject<Fields extends TProperties>(
  title: string,
  fields: Fields,
): TObject<Fields> {
  return named(title, object(fields));
}

export const IGNORED = 'x-ignored';

export const Timestamp = Type.Unsafe<Date>({ type: 'string', format: 'date-time' });

export const Id = Type.String({
  pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
  'x-sentence': 'must be an id: a UUID in lower case',
});

/** Other characters can be interpreted by a terminal, a log or an email subject. */
const PLAIN = { pattern: `^[^${CONTROLS}]*$`, 'x-sentence': 'must not contain control characters' };

export const Name = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: `^[^${CONTROLS}]*[^\\s${CONTROLS}][^${CONTROLS}]*$`,
  'x-sentence': 'must not be blank, nor contain control characters',
});

export const PersonName = Type.String({ maxLength: 100, ...PLAIN });

export const Word = Type.String({ minLength: 1, maxLength: 512, ...PLAIN });

export const StrategySchema = object({
  type: oneOf(['linear', 'exponential'], {
    description: '`linear` waits the same time before each retry; `exponential` doubles it.',
  }),
  duration: integer(1, 86_400, 'Seconds before the first retry.'),
  retry_count: integer(0, 1000, 'Retries after the first attempt.'),
  max_seconds: Type.Optional(integer(1, 604_800, 'Cap of the exponential wait.')),
});

/**
 * Further problems are only counted, because describing 100,000 unknown fields would block the
 * event loop for seconds.
 */
const PROBLEMS_MAX = 20;
const FIELD_MAX = 200;

// `verbose` adds the violated schema, which error messages need, and the values, which can be
// secrets and are never shown.
const options = { allErrors: true, strict: false, verbose: true, validateFormats: false } as const;
const bodies = new Ajv2020(options);
const queries = new Ajv2020({ ...options, coerceTypes: 'array' });

/** A query validator also converts values in place. */
export type Validator = (value: unknown) => InvalidField[];

/** Describes up to 20 problems, counts the rest, and changes nothing. */
export function bodyValidator(schema: TSchema): Validator {
  return validator(() => bodies.compile(schema));
}

/** Converts values in place to the schema's types and to arrays. */
export function queryValidator(schema: TSchema): Validator {
  return validator(() => queries.compile(schema));
}

/**
 * Uses a separate Ajv, because versions of a plugin's schema can share their $id.
 * @param prefix the path of the value in the request
 */
export function connectionValidator(
  schema: Readonly<Record<string, unknown>>,
  prefix: string,
): Validator {
  return validator(() => new Ajv2020(options).compile(schema), prefix);
}

/**
 * Compiles on first use. Compiling all eighty schemas at startup would take a quarter of a second.
 */
function validator(compile: () => ValidateFunction, prefix = ''): Validator {
  let compiled: ValidateFunction | undefined;
  return (value) => {
    const validate = (compiled ??= compile());
    if (validate(value)) return [];
    const errors = (validate.errors ?? []).filter(
      (error) => error.keyword !== 'if' && !isIgnored(error),
    );
    if (errors.length === 0) return [];
    const distinct = new Map<string, InvalidField>();
    let looked = 0;
    for (; looked < errors.length && distinct.size < PROBLEMS_MAX; looked++) {
      const it = problem(errors[looked]!, prefix);
      distinct.set(`${it.field} ${it.sentence}`, it);
    }
    const more = errors.length - looked;
    const rest = {
      field: 'body',
      sentence: `has ${more} more ${more === 1 ? 'problem' : 'problems'}, not examined after the first ${PROBLEMS_MAX}`,
    };
    return [...distinct.values(), ...(more === 0 ? [] : [rest])];
  };
}

/** Returns the names of the removed fields. */
export function takeIgnored(schema: TSchema | undefined, body: unknown): string[] {
  const names = (schema?.[IGNORED] as readonly string[] | undefined) ?? [];
  const found = names.filter((name) => isObject(body) && Object.hasOwn(body, name));
  for (const name of found) delete (body as Record<string, unknown>)[name];
  return found;
}

function isIgnored({ keyword, parentSchema, params }: ErrorObject): boolean {
  const names = parentSchema?.[IGNORED] as readonly string[] | undefined;
  return (
    keyword === 'additionalProperties' &&
    names !== undefined &&
    names.includes((params as Members)['additionalProperty'] as string)
  );
}

type Members = Readonly<Record<string, unknown>>;

const SENTENCES: Readonly<Record<string, (params: Members, schema: Members) => string>> = {
  minimum: ({ limit }) => `must be at least ${String(limit)}`,
  maximum: ({ limit }) => `must be at most ${String(limit)}`,
  exclusiveMinimum: ({ limit }) => `must be more than ${String(limit)}`,
  exclusiveMaximum: ({ limit }) => `must be less than ${String(limit)}`,
  minLength: ({ limit }) =>
    limit === 1 ? 'must not be empty' : `must have at least ${String(limit)} characters`,
  maxLength: ({ limit }) => `must have at most ${String(limit)} characters`,
  minItems: ({ limit }) =>
    limit === 1 ? 'must not be empty' : `must have at least ${String(limit)} elements`,
  maxItems: ({ limit }) => `must have at most ${String(limit)} elements`,
  maxProperties: ({ limit }) => `must have at most ${String(limit)} members`,
  required: () => 'is missing',
  additionalProperties: unknownField,
  unevaluatedProperties: unknownField,
  type: ({ type }) => `must be ${article([type].flat().map(String))}`,
  enum: ({ allowedValues }) => `must be one of ${(allowedValues as unknown[]).join(', ')}`,
  const: ({ allowedValue }) => `must be ${JSON.stringify(allowedValue)}`,
  pattern: ({ pattern }, schema) =>
    (schema['x-sentence'] as string | undefined) ?? `must match ${String(pattern)}`,
  'false schema': () => 'cannot be combined with the other fields',
};

function unknownField(
  { additionalProperty, unevaluatedProperty }: Members,
  { properties = {} }: Members,
): string {
  return `is not a field here${didYouMean(String(additionalProperty ?? unevaluatedProperty), Object.keys(properties as object))}`;
}

function problem(error: ErrorObject, prefix: string): InvalidField {
  const { keyword, parentSchema = {}, message = 'is not valid' } = error;
  const params = error.params as Members;
  const at = [prefix, ...error.instancePath.split('/').slice(1).map(unescape)].filter(
    (part) => part !== '',
  );
  const name = (params['missingProperty'] ??
    params['additionalProperty'] ??
    params['unevaluatedProperty']) as string | undefined;
  const field = (name === undefined ? at : [...at, name]).join('.') || 'body';
  return { field, sentence: SENTENCES[keyword]?.(params, parentSchema) ?? message };
}

export function invalid(field: string, sentence: string): GatewayError<'invalid_request'> {
  return new GatewayError('invalid_request', { problems: [{ field, sentence }] });
}

/** Throws `invalid_request`, with field names truncated to 200 characters. */
export function assertValid(problems: readonly InvalidField[]): void {
  if (problems.length === 0) return;
  // The last problem, beyond the maximum, can be the validator's count of the others.
  const clipped = problems.slice(0, PROBLEMS_MAX + 1).map(({ field, sentence }) => ({
    field: clip(field, FIELD_MAX + 1),
    sentence,
  }));
  throw new GatewayError('invalid_request', { problems: clipped });
}

function article(types: readonly string[]): string {
  return types
    .map((type) => (type === 'null' ? 'null' : `${/^[aio]/.test(type) ? 'an' : 'a'} ${type}`))
    .join(' or ');
}

/** RFC 6901. */
function unescape(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}
