import type { TSchema } from '@sinclair/typebox';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { didYouMean, type InvalidField } from '@gateway/core/errors';

/** Problems beyond these are left out: an array of a thousand wrong elements says nothing more. */
const PROBLEMS_MAX = 20;

// Verbose: a sentence needs the schema that was broken. Values are never shown, they may be secrets.
const options = { allErrors: true, strict: false, verbose: true, validateFormats: false } as const;
const bodies = new Ajv2020(options);
const queries = new Ajv2020({ ...options, coerceTypes: 'array' });

/** Says what is wrong with a value, nothing when it is right. Values of a query are turned into the types of their schema on the way. */
export type Validator = (value: unknown) => InvalidField[];

export function bodyValidator(schema: TSchema): Validator {
  return validator(() => bodies.compile(schema));
}

export function queryValidator(schema: TSchema): Validator {
  return validator(() => queries.compile(schema));
}

/** For a schema that comes with a plugin; `prefix` is the path of the value in the request. */
export function connectionValidator(schema: Readonly<Record<string, unknown>>, prefix: string): Validator {
  // Without its identity, so that two versions of a plugin may be seen by one process.
  const { $id: _, ...plain } = schema;
  return validator(() => bodies.compile(plain), prefix);
}

/** Compiled when it is first needed: a server has some eighty, which would take a quarter of a second of its start. */
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

function problem(error: ErrorObject, prefix: string): InvalidField {
  const {
    keyword,
    params,
    parentSchema = {},
  } = error as ErrorObject<string, Record<string, unknown>, unknown> & { parentSchema?: Record<string, unknown> };
  const at = [prefix, ...error.instancePath.split('/').slice(1).map(unescape)].filter((part) => part !== '');
  const inner = (name: unknown) => [...at, String(name)].join('.');
  const field = at.join('.') || 'body';
  switch (keyword) {
    case 'required':
      return { field: inner(params['missingProperty']), sentence: 'is missing' };
    case 'additionalProperties':
    case 'unevaluatedProperties': {
      const name = String(params['additionalProperty'] ?? params['unevaluatedProperty']);
      const known = Object.keys((parentSchema['properties'] as object | undefined) ?? {});
      return { field: inner(name), sentence: `is not a field here${didYouMean(name, known)}` };
    }
    case 'type':
      return { field, sentence: `must be ${article([params['type']].flat().map(String))}` };
    case 'enum':
      return { field, sentence: `must be one of ${(params['allowedValues'] as unknown[]).join(', ')}` };
    case 'const':
      return { field, sentence: `must be ${JSON.stringify(params['allowedValue'])}` };
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
      return { field, sentence: `must be ${bounds[keyword]} ${String(params['limit'])}` };
    case 'minLength':
      return { field, sentence: params['limit'] === 1 ? 'must not be empty' : `must have at least ${String(params['limit'])} characters` };
    case 'maxLength':
      return { field, sentence: `must have at most ${String(params['limit'])} characters` };
    case 'minItems':
      return { field, sentence: params['limit'] === 1 ? 'must not be empty' : `must have at least ${String(params['limit'])} elements` };
    case 'maxItems':
      return { field, sentence: `must have at most ${String(params['limit'])} elements` };
    case 'maxProperties':
      return { field, sentence: `must have at most ${String(params['limit'])} members` };
    case 'pattern':
      return {
        field,
        sentence: typeof parentSchema['x-sentence'] === 'string' ? parentSchema['x-sentence'] : `must match ${String(params['pattern'])}`,
      };
    case 'false schema':
      return { field, sentence: 'does not belong here beside the other fields' };
    default:
      return { field, sentence: error.message ?? 'is not valid' };
  }
}

const bounds = { minimum: 'at least', maximum: 'at most', exclusiveMinimum: 'more than', exclusiveMaximum: 'less than' } as const;

function article(types: readonly string[]): string {
  return types.map((type) => (type === 'null' ? 'null' : `${/^[aio]/.test(type) ? 'an' : 'a'} ${type}`)).join(' or ');
}

/** RFC 6901. */
function unescape(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}
