import { type TableColumns, Table } from '../../components/index.js';
import type { JsonObject } from '../../format/json.js';
import { own } from '../../format/text.js';

export function SchemaTable({ schema }: { schema: unknown }) {
  const rows = schemaRows(schema);
  if (rows.length === 0) return <p class="muted">The schema defines no fields.</p>;
  return <Table label="Fields" rows={rows} columns={columns} />;
}

const columns: TableColumns<SchemaRow> = {
  Field: ({ uid, isRequired }) => (
    <>
      <span class="mono">{uid}</span> {!isRequired && <span class="muted">optional</span>}
    </>
  ),
  Type: ({ type }) => type,
  Description: ({ description, rules }) => (
    <>
      {description} {rules && <span class="muted">{description ? `(${rules})` : rules}</span>}
    </>
  ),
};

interface SchemaRow {
  /** Dotted. `[]` is an element of a list, `*` any other name. */
  readonly uid: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly description: string;
  readonly rules: string;
}

/** A schema may be recursive and as large as a message. */
const DEPTH_MAX = 8;
const ROWS_MAX = 300;

export function schemaRows(schema: unknown): SchemaRow[] {
  if (!isObject(schema)) return [];
  const rows: SchemaRow[] = [];
  const visit = (given: unknown, path: string, isRequired: boolean, depth: number) => {
    if (depth > DEPTH_MAX || rows.length >= ROWS_MAX) return;
    const it = resolved(schema, given);
    if (path !== '')
      rows.push({
        uid: path,
        type: typeOf(schema, it),
        isRequired,
        description: text(it['description']),
        rules: rulesOf(it),
      });
    within(it, path, depth);
  };
  const within = (it: JsonObject, path: string, depth: number) => {
    const required = Array.isArray(it['required']) ? it['required'] : [];
    const below = (name: string) => (path === '' ? name : `${path}.${name}`);
    for (const [name, inner] of Object.entries(objectAt(it, 'properties')))
      visit(inner, below(name), required.includes(name), depth + 1);
    if (isObject(it['additionalProperties']))
      visit(it['additionalProperties'], below('*'), false, depth + 1);
    if (isObject(it['items'])) visitElement(it['items'], `${path}[]`, depth);
    for (const variant of variantsOf(it))
      if (depth < DEPTH_MAX) within(resolved(schema, variant), path, depth + 1);
  };
  /** Elements need no row: the list's row shows their type. */
  const visitElement = (items: JsonObject, path: string, depth: number) => {
    if (depth < DEPTH_MAX) within(resolved(schema, items), path, depth + 1);
  };
  visit(schema, '', false, 0);
  return distinct(rows);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function objectAt(it: JsonObject, name: string): JsonObject {
  const member = own(it, name);
  return isObject(member) ? member : {};
}

const text = (value: unknown) => (typeof value === 'string' ? value : '');
const shown = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

/** References and `allOf` are resolved. */
function resolved(root: JsonObject, given: unknown, left = DEPTH_MAX): JsonObject {
  if (!isObject(given) || left === 0) return {};
  const {
    $ref: ref,
    allOf,
    ...own
  } = given as JsonObject & { readonly $ref?: unknown; readonly allOf?: unknown };
  const parts = [
    ...(typeof ref === 'string' ? [resolved(root, at(root, ref), left - 1)] : []),
    ...(Array.isArray(allOf) ? allOf.map((part) => resolved(root, part, left - 1)) : []),
    own,
  ];
  return parts.reduce((all, part) => ({
    ...all,
    ...part,
    properties: { ...objectAt(all, 'properties'), ...objectAt(part, 'properties') },
    required: [
      ...new Set(
        [all, part].flatMap((one) =>
          Array.isArray(one['required']) ? (one['required'] as unknown[]) : [],
        ),
      ),
    ],
  }));
}

/** A JSON Pointer such as `#/$defs/Money`. */
function at(root: JsonObject, ref: string): unknown {
  const [start, ...names] = ref.split('/');
  if (start !== '#') return undefined;
  return names.reduce<unknown>(
    (it, name) => (isObject(it) ? it[name.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined),
    root,
  );
}

function variantsOf(it: JsonObject): readonly unknown[] {
  return [it['oneOf'], it['anyOf']].flatMap((list) =>
    Array.isArray(list) ? (list as unknown[]) : [],
  );
}

function typeOf(root: JsonObject, it: JsonObject): string {
  const variants = variantsOf(it);
  if (variants.length > 0)
    return [...new Set(variants.map((variant) => typeOf(root, resolved(root, variant))))].join(
      ' or ',
    );
  if ('const' in it) return JSON.stringify(it['const']);
  const types = [
    it['type'] ?? (Object.keys(objectAt(it, 'properties')).length > 0 ? 'object' : 'any'),
  ]
    .flat()
    .map(String);
  const words = types.map((type) => {
    if (type === 'array')
      return `list of ${isObject(it['items']) ? typeOf(root, resolved(root, it['items'])) : 'any'}`;
    return typeof it['format'] === 'string' && type === 'string'
      ? `string (${it['format']})`
      : type;
  });
  return words.join(' or ');
}

const many = (value: unknown, thing: string) =>
  value === 1 ? `one ${thing}` : `${shown(value)} ${thing}s`;

const RULES: Readonly<Record<string, (value: unknown) => string>> = {
  enum: (value) => `one of ${[value].flat().map(shown).join(', ')}`,
  minimum: (value) => `at least ${shown(value)}`,
  maximum: (value) => `at most ${shown(value)}`,
  exclusiveMinimum: (value) => `more than ${shown(value)}`,
  exclusiveMaximum: (value) => `less than ${shown(value)}`,
  minLength: (value) => `at least ${many(value, 'character')}`,
  maxLength: (value) => `at most ${many(value, 'character')}`,
  minItems: (value) => `at least ${many(value, 'element')}`,
  maxItems: (value) => `at most ${many(value, 'element')}`,
  pattern: (value) => `matches ${shown(value)}`,
  default: (value) => `${shown(value)} by default`,
};

function rulesOf(it: JsonObject): string {
  const rules = Object.entries(RULES).flatMap(([name, words]) =>
    it[name] === undefined ? [] : [words(it[name])],
  );
  return [...rules, ...(it['deprecated'] === true ? ['deprecated'] : [])].join('; ');
}

/** Variants may repeat a field. */
function distinct(rows: readonly SchemaRow[]): SchemaRow[] {
  return [...new Map(rows.map((row) => [row.uid, row])).values()];
}
