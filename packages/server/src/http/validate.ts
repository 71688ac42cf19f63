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

export function bodyValidator(schema: TSchema): Validator {
  return validator(() => bodies.compile(schema));
}

export function queryValidator(schema: TSchema): Validator {
  return validator(() => queries.compile(schema));
}

/** For the schema of a plugin; `prefix` is the path of the value in the request. */
export function connectionValidator(schema: Readonly<Record<string, unknown>>, prefix: string): Validator {
  // Ajv rejects a second schema with the same $id, as of another version of the plugin.
  const { $id: _, ...plain } = schema;
  return validator(() => bodies.compile(plain), prefix);
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

/** The sentence of each keyword with a limit. */
const LIMITS: Readonly<Record<string, (limit: string) => string>> = {
  minimum: (limit) => `must be at least ${limit}`,
  maximum: (limit) => `must be at most ${limit}`,
  exclusiveMinimum: (limit) => `must be more than ${limit}`,
  exclusiveMaximum: (limit) => `must be less than ${limit}`,
  minLength: (limit) => (limit === '1' ? 'must not be empty' : `must have at least ${limit} characters`),
  maxLength: (limit) => `must have at most ${limit} characters`,
  minItems: (limit) => (limit === '1' ? 'must not be empty' : `must have at least ${limit} elements`),
  maxItems: (limit) => `must have at most ${limit} elements`,
  maxProperties: (limit) => `must have at most ${limit} members`,
};

function problem(error: ErrorObject, prefix: string): InvalidField {
  const { keyword, parentSchema = {} } = error as { keyword: string; parentSchema?: Record<string, unknown> };
  const params = error.params as Record<string, unknown>;
  const at = [prefix, ...error.instancePath.split('/').slice(1).map(unescape)].filter((part) => part !== '');
  const name = (params['missingProperty'] ?? params['additionalProperty'] ?? params['unevaluatedProperty']) as string | undefined;
  const field = (name === undefined ? at : [...at, name]).join('.') || 'body';
  const sentence = LIMITS[keyword]?.(String(params['limit'])) ?? sentenceOf(keyword, params, parentSchema);
  return { field, sentence: sentence ?? error.message ?? 'is not valid' };
}

function sentenceOf(keyword: string, params: Record<string, unknown>, schema: Record<string, unknown>): string | undefined {
  switch (keyword) {
    case 'required':
      return 'is missing';
    case 'additionalProperties':
    case 'unevaluatedProperties': {
      const name = String(params['additionalProperty'] ?? params['unevaluatedProperty']);
      return `is not a field here${didYouMean(name, Object.keys((schema['properties'] as object | undefined) ?? {}))}`;
    }
    case 'type':
      return `must be ${article([params['type']].flat().map(String))}`;
    case 'enum':
      return `must be one of ${(params['allowedValues'] as unknown[]).join(', ')}`;
    case 'const':
      return `must be ${JSON.stringify(params['allowedValue'])}`;
    case 'pattern':
      return typeof schema['x-sentence'] === 'string' ? schema['x-sentence'] : `must match ${String(params['pattern'])}`;
    case 'false schema':
      return 'does not belong here beside the other fields';
    default:
      return undefined;
  }
}

/** Throws `invalid_request` when there are problems. */
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
