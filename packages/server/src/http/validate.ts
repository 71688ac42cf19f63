import type { TSchema } from '@sinclair/typebox';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { didYouMean, GatewayError, type InvalidField } from '@gateway/core/errors';

/** More problems are left out: an array of a thousand wrong elements says nothing more. */
const PROBLEMS_MAX = 20;

// Verbose: a sentence needs the schema that was broken. Values may be secrets and are never shown.
const options = { allErrors: true, strict: false, verbose: true, validateFormats: false } as const;
const bodies = new Ajv2020(options);
const queries = new Ajv2020({ ...options, coerceTypes: 'array' });

/** Returns the problems of a value. Validators of queries convert values in place to the types of their schema. */
export type Validator = (value: unknown) => InvalidField[];

/** Reports at most 20 problems and leaves the body unchanged. Compiles the schema on the first call. */
export function bodyValidator(schema: TSchema): Validator {
  return validator(() => bodies.compile(schema));
}

/** Like `bodyValidator`, but converts values in place to the types of the schema, and a single value to an array where it asks for one. */
export function queryValidator(schema: TSchema): Validator {
  return validator(() => queries.compile(schema));
}

/** By the schema of a plugin, which has an Ajv of its own: another version may have the same $id. `prefix` is the path of the value in the request. */
export function connectionValidator(schema: Readonly<Record<string, unknown>>, prefix: string): Validator {
  return validator(() => new Ajv2020(options).compile(schema), prefix);
}

/** Compiles on first use: compiling all eighty at start would take a quarter of a second. */
function validator(compile: () => ValidateFunction, prefix = ''): Validator {
  let compiled: ValidateFunction | undefined;
  return (value) => {
    const validate = (compiled ??= compile());
    if (validate(value)) return [];
    const errors = (validate.errors ?? []).filter((error) => error.keyword !== 'if');
    const problems = errors.map((error) => problem(error, prefix));
    const distinct = new Map(problems.map((it) => [`${it.field} ${it.sentence}`, it]));
    return [...distinct.values()].slice(0, PROBLEMS_MAX);
  };
}

type Members = Readonly<Record<string, unknown>>;

const SENTENCES: Readonly<Record<string, (params: Members, schema: Members) => string>> = {
  minimum: ({ limit }) => `must be at least ${String(limit)}`,
  maximum: ({ limit }) => `must be at most ${String(limit)}`,
  exclusiveMinimum: ({ limit }) => `must be more than ${String(limit)}`,
  exclusiveMaximum: ({ limit }) => `must be less than ${String(limit)}`,
  minLength: ({ limit }) => (limit === 1 ? 'must not be empty' : `must have at least ${String(limit)} characters`),
  maxLength: ({ limit }) => `must have at most ${String(limit)} characters`,
  minItems: ({ limit }) => (limit === 1 ? 'must not be empty' : `must have at least ${String(limit)} elements`),
  maxItems: ({ limit }) => `must have at most ${String(limit)} elements`,
  maxProperties: ({ limit }) => `must have at most ${String(limit)} members`,
  required: () => 'is missing',
  additionalProperties: unknownField,
  unevaluatedProperties: unknownField,
  type: ({ type }) => `must be ${article([type].flat().map(String))}`,
  enum: ({ allowedValues }) => `must be one of ${(allowedValues as unknown[]).join(', ')}`,
  const: ({ allowedValue }) => `must be ${JSON.stringify(allowedValue)}`,
  pattern: ({ pattern }, schema) => (schema['x-sentence'] as string | undefined) ?? `must match ${String(pattern)}`,
  'false schema': () => 'does not belong here beside the other fields',
};

function unknownField({ additionalProperty, unevaluatedProperty }: Members, { properties = {} }: Members): string {
  return `is not a field here${didYouMean(String(additionalProperty ?? unevaluatedProperty), Object.keys(properties as object))}`;
}

function problem(error: ErrorObject, prefix: string): InvalidField {
  const { keyword, parentSchema = {}, message = 'is not valid' } = error;
  const params = error.params as Members;
  const at = [prefix, ...error.instancePath.split('/').slice(1).map(unescape)].filter((part) => part !== '');
  const name = (params['missingProperty'] ?? params['additionalProperty'] ?? params['unevaluatedProperty']) as string | undefined;
  const field = (name === undefined ? at : [...at, name]).join('.') || 'body';
  return { field, sentence: SENTENCES[keyword]?.(params, parentSchema) ?? message };
}

/** Throws `invalid_request` with these problems if there are any. */
export function assertValid(problems: readonly InvalidField[]): void {
  if (problems.length > 0) throw new GatewayError('invalid_request', { problems });
}

function article(types: readonly string[]): string {
  return types.map((type) => (type === 'null' ? 'null' : `${/^[aio]/.test(type) ? 'an' : 'a'} ${type}`)).join(' or ');
}

/** RFC 6901. */
function unescape(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}
