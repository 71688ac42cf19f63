/** The keywords that a form supports. Only the server checks others. */
export interface FormSchema {
  readonly title?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly format?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly items?: FormSchema | boolean;
  readonly properties?: Readonly<Record<string, FormSchema | boolean>>;
  readonly required?: readonly string[];
  readonly dependentRequired?: Readonly<Record<string, readonly string[]>>;
  readonly allOf?: readonly FormSchema[];
  readonly if?: FormSchema;
  readonly then?: FormSchema;
  readonly else?: FormSchema;
  readonly 'x-secret'?: boolean;
  /** Valid, but not offered. */
  readonly 'x-hidden'?: readonly string[];
  /** The meaning of null. */
  readonly 'x-unset'?: string;
  readonly 'x-labels'?: Readonly<Record<string, string>>;
  /** `project` means not over a portal link. */
  readonly 'x-set-by'?: string;
}

export type Value = Readonly<Record<string, unknown>>;

/** Masks a stored secret in responses. A request with the mask keeps the secret. */
export const MASK = '********';

const LONG_TEXT = 10_000;

type Kind =
  | 'secret'
  | 'choice'
  | 'choices'
  | 'switch'
  | 'number'
  | 'lines'
  | 'long-text'
  | 'text'
  | 'group'
  | 'json';

export function isLongText({ maxLength = 0 }: FormSchema): boolean {
  return maxLength > LONG_TEXT;
}

export function kindOf(schema: FormSchema): Kind {
  const type = [schema.type].flat().find((it) => it !== 'null');
  if (schema.enum) return 'choice';
  switch (type) {
    case 'boolean':
      return 'switch';
    case 'integer':
    case 'number':
      return 'number';
    case 'object':
      return schema.properties ? 'group' : 'json';
    case 'array':
      if (typeof schema.items !== 'object' || schema.items.type !== 'string') return 'json';
      return schema.items.enum ? 'choices' : 'lines';
    case 'string':
      if (schema['x-secret']) return 'secret';
      return isLongText(schema) ? 'long-text' : 'text';
    default:
      return schema.properties ? 'group' : 'json';
  }
}

/** The title, or a label from the name, such as `Consumer group id` for `consumer_group_id`. */
export function labelOf(name: string, { title }: FormSchema): string {
  if (title) return title;
  const words = name
    .replaceAll(/[_-]+/g, ' ')
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function fieldsOf(
  schema: FormSchema,
  value: Value,
): { name: string; schema: FormSchema; isRequired: boolean }[] {
  const found: FieldStates = { hidden: new Set(), required: new Set() };
  apply(schema, value, found);
  return Object.entries(schema.properties ?? {}).flatMap(([name, inner]) =>
    inner === false || found.hidden.has(name)
      ? []
      : [fieldOf(name, inner === true ? {} : inner, found)],
  );
}

/** With a `minLength` of 0 the field is not required, because an empty string is valid. */
function fieldOf(name: string, schema: FormSchema, { required }: FieldStates) {
  return { name, schema, isRequired: required.has(name) && schema.minLength !== 0 };
}

interface FieldStates {
  readonly hidden: Set<string>;
  readonly required: Set<string>;
}

function apply(schema: FormSchema, value: Value, found: FieldStates): void {
  for (const name of schema.required ?? []) found.required.add(name);
  for (const [name, others] of Object.entries(schema.dependentRequired ?? {}))
    if (isGiven(value[name])) for (const other of others) found.required.add(other);
  for (const [name, inner] of Object.entries(schema.properties ?? {}))
    if (inner === false) found.hidden.add(name);
  for (const name of schema['x-hidden'] ?? []) found.hidden.add(name);
  for (const part of schema.allOf ?? []) apply(part, value, found);
  if (!schema.if) return;
  const isMet = matches(schema.if, value);
  const branch = isMet === undefined ? undefined : isMet ? schema.then : schema.else;
  if (branch) apply(branch, value, found);
}

const UNDERSTOOD = new Set([
  'properties',
  'required',
  'const',
  'enum',
  'type',
  'title',
  'description',
]);

/** Undefined for an unknown keyword; all fields are then shown. */
function matches(schema: FormSchema | boolean, value: unknown): boolean | undefined {
  if (typeof schema === 'boolean') return schema;
  if (Object.keys(schema).some((name) => !UNDERSTOOD.has(name))) return undefined;
  if ('const' in schema && schema.const !== value) return false;
  if (schema.enum && !schema.enum.includes(value)) return false;
  const members = (typeof value === 'object' && value !== null ? value : {}) as Value;
  if (schema.required?.some((name) => !isGiven(members[name]))) return false;
  const inner = Object.entries(schema.properties ?? {}).flatMap(([name, it]) =>
    isGiven(members[name]) ? [matches(it, members[name])] : [],
  );
  return inner.includes(false) ? false : inner.includes(undefined) ? undefined : true;
}

/** Requests omit empty fields, so that the server applies its defaults. */
function isGiven(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return false;
  if (Array.isArray(value)) return value.some(isGiven);
  return typeof value !== 'object' || Object.values(value).some(isGiven);
}

/**
 * Only filled-in fields that apply. A stored secret whose field is hidden or emptied is null, which
 * removes it.
 */
export function submitted(
  schema: FormSchema,
  value: Value,
  before: Value = {},
): Record<string, unknown> {
  const shown = new Map(fieldsOf(schema, value).map((it) => [it.name, it.schema]));
  const result: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    if (typeof inner === 'boolean') continue;
    const given = shown.has(name) ? value[name] : undefined;
    const stored = before[name];
    if (kindOf(inner) === 'group') {
      const group = submitted(inner, (given ?? {}) as Value, (stored ?? {}) as Value);
      if (Object.values(group).some((it) => it !== null)) result[name] = group;
    } else if (isGiven(given))
      result[name] = Array.isArray(given)
        ? given.filter(isGiven)
        : kindOf(inner) === 'number'
          ? Number(given)
          : given;
    else if (stored === MASK) result[name] = null;
  }
  return result;
}

/**
 * As an API resource. An emptied field is null if its schema allows null, `''` if an empty string
 * is valid, otherwise its default or, without one, omitted.
 */
export function written<Resource>({ properties = {} }: FormSchema, value: Value): Resource {
  const field = (schema: FormSchema, given: unknown): unknown => {
    const kind = kindOf(schema);
    if (kind === 'group' && given) return written(schema, given as Value);
    if (kind === 'number' && typeof given === 'string' && given !== '') return Number(given);
    const text = kind === 'text' && typeof given === 'string' ? given.trim() : given;
    if (isGiven(text)) return text;
    const isNullable = [schema.type].flat().includes('null');
    return isNullable ? null : schema.minLength === 0 ? '' : schema.default;
  };
  const fields = Object.entries(properties).map(([name, schema]) => [
    name,
    typeof schema === 'boolean' ? value[name] : field(schema, value[name]),
  ]);
  return Object.fromEntries(fields) as Resource;
}
