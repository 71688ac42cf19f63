// @ts-check
// `node scripts/prepare/client.mjs`: writes `packages/client/src/generated.ts`, a type for each
// schema and a method for each operation of `docs/reference/openapi.json`.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const DOCUMENT = 'docs/reference/openapi.json';
const SOURCE = 'packages/client/src/generated.ts';

/** The files that the client is made of, from the root. */
export const clientInputs = [DOCUMENT, 'scripts/prepare/client.mjs'];

/** @typedef {Readonly<Record<string, unknown>>} Schema */

/**
 * Writes the source of the client, unless it is up to date; runs before `tsc -b`.
 * @param {string} root
 */
export function writeClient(root) {
  const text = clientSource(JSON.parse(fs.readFileSync(path.join(root, DOCUMENT), 'utf8')));
  const file = path.join(root, SOURCE);
  if (!fs.existsSync(file) || fs.readFileSync(file, 'utf8') !== text) fs.writeFileSync(file, text);
}

/** @param {{ components: { schemas: Record<string, Schema> }, paths: Record<string, any> }} document */
function clientSource({ components, paths }) {
  const types = Object.entries(components.schemas)
    .filter(([name]) => name !== 'Error')
    .map(([name, schema]) => declaration(name, schema));
  /** @type {Map<string, string[]>} */
  const groups = new Map();
  for (const [place, operations] of Object.entries(paths))
    for (const [verb, operation] of Object.entries(operations)) {
      const [group] = operation.tags;
      groups.set(group, [...(groups.get(group) ?? []), method(group, verb, place, operation)]);
    }
  const members = [...groups].map(
    ([group, methods]) => `${group}: {\n${indented(methods.join('\n'))}\n},`,
  );
  return `// Made from ${DOCUMENT}: change the routes of the server instead.
import type { CallOptions, Transport } from './call.js';
import type { Pages } from './pages.js';

${types.join('\n\n')}

/** The methods of the client by resource. */
export function resources({ call, list }: Transport) {
  return {
${indented(indented(members.join('\n')))}
  };
}

export type Resources = ReturnType<typeof resources>;

/** JSON Schemas of resources that are edited in forms. */
export const forms = ${JSON.stringify(formsOf(components.schemas), null, 2)} as const;
`;
}

/** Keywords that forms use; the document cannot have a `title` at each field, nor a `default`. */
const FORM_KEYWORDS = [
  ...['type', 'enum', 'items', 'required', 'minLength', 'maxLength', 'format', 'examples'],
  ...['description', 'x-label', 'x-default', 'x-unset', 'x-secret', 'x-set-by', 'properties'],
];
const IN_JSON_SCHEMA = new Map([
  ['x-label', 'title'],
  ['x-default', 'default'],
]);

/** @param {Record<string, Schema>} schemas */
function formsOf(schemas) {
  return Object.fromEntries(
    Object.entries(schemas).flatMap(([name, schema]) =>
      schema['x-form'] ? [[name, form(schema)]] : [],
    ),
  );
}

/**
 * @param {Schema} schema
 * @returns {Schema}
 */
function form(schema) {
  const given = Object.entries(schema).filter(([keyword]) => FORM_KEYWORDS.includes(keyword));
  return Object.fromEntries(
    given.map(([keyword, value]) => [
      IN_JSON_SCHEMA.get(keyword) ?? keyword,
      keyword === 'properties' ? fields(/** @type {Record<string, Schema>} */ (value)) : value,
    ]),
  );
}

/** @param {Readonly<Record<string, Schema>>} properties */
function fields(properties) {
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, schema]) =>
      schema['readOnly'] ? [] : [[name, form(schema)]],
    ),
  );
}

/**
 * @param {string} group
 * @param {string} verb
 * @param {string} place
 * @param {any} operation
 */
function method(
  group,
  verb,
  place,
  { operationId, summary, requestBody, responses, parameters = [] },
) {
  const succeeded = /** @type {any} */ (
    Object.values(responses).find((/** @type {any} */ it) => it.content)
  );
  const answer = succeeded.content['application/json'].schema.properties.data;
  const row = answer.properties?.pagination && answer.properties.content.items;
  /** @type {{ name: string, in: string, required: boolean, description?: string, schema: Schema }[]} */
  const all = parameters;
  const inPath = all.flatMap((it) =>
    it.in === 'path' && (it.name !== 'project_id' || group === 'projects') ? [it.name] : [],
  );
  const inQuery = all.filter((it) => it.in === 'query' && !(row && it.name === 'page'));
  const needed = inQuery.filter(({ required }) => required).map((it) => it.name);
  const query = members(
    Object.fromEntries(
      inQuery.map((it) => [it.name, { ...it.schema, description: it.description }]),
    ),
    needed,
  );
  const takes = [
    ...inPath.map((it) => `${camel(it)}: string`),
    ...(requestBody ? [`body: ${type(requestBody.content['application/json'].schema)}`] : []),
    ...(inQuery.length > 0 ? [`query${needed.length > 0 ? '' : '?'}: ${query}`] : []),
    'options?: CallOptions',
  ];
  const passes = [
    `method: '${verb.toUpperCase()}'`,
    `path: '${place}'`,
    ...(inPath.length > 0
      ? [`parameters: { ${inPath.map((it) => `${it}: ${camel(it)}`).join(', ')} }`]
      : []),
    ...(requestBody ? ['body'] : []),
    ...(inQuery.length > 0 ? ['query'] : []),
    // Only creates that an `Idempotency-Key` makes repeatable have this header.
    ...(succeeded.headers?.['Idempotent-Replayed'] ? ['isCreatedOnce: true'] : []),
    'options',
  ];
  const name = operationId.charAt(group.length).toLowerCase() + operationId.slice(group.length + 1);
  return `/** ${summary} */
${name}: (${takes.join(', ')}): ${row ? `Pages<${type(row)}>` : `Promise<${type(answer)}>`} =>
  ${row ? 'list' : 'call'}({ ${passes.join(', ')} }),`;
}

/**
 * @param {string} name
 * @param {Schema} schema
 */
function declaration(name, schema) {
  return `${comment(schema)}export ${schema['type'] === 'object' && schema['properties'] ? `interface ${name} ${type(schema)}` : `type ${name} = ${type(schema)};`}`;
}

/**
 * Converts a schema to TypeScript.
 * @param {any} schema
 * @returns {string}
 */
function type(schema) {
  if (schema.$ref) return schema.$ref.split('/').at(-1);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.maxLength === 0) return 'null';
  if (schema.allOf) return schema.allOf.map(type).join(' & ');
  if (schema.enum)
    return [
      ...schema.enum.map((/** @type {unknown} */ it) => JSON.stringify(it)),
      ...(schema.type.includes?.('null') && Array.isArray(schema.type) ? ['null'] : []),
    ].join(' | ');
  if (Array.isArray(schema.type))
    return schema.type
      .map((/** @type {string} */ one) => type({ ...schema, type: one }))
      .join(' | ');
  switch (schema.type) {
    case 'integer':
      return 'number';
    case 'array':
      return `readonly (${type(schema.items)})[]`;
    case 'object':
      return typeof schema.additionalProperties === 'object' || !schema.properties
        ? `Readonly<Record<string, ${type(schema.additionalProperties ?? {})}>>`
        : members(schema.properties ?? {}, schema.required, schema.additionalProperties === true);
    default:
      return schema.type ?? 'unknown';
  }
}

/**
 * @param {Readonly<Record<string, any>>} properties
 * @param {readonly string[]} [required]
 * @param {unknown} [others] true or a schema if additional properties are allowed
 */
function members(properties, required = [], others) {
  const lines = Object.entries(properties).map(
    ([name, schema]) =>
      `${comment(schema)}readonly ${/^\w+$/.test(name) ? name : JSON.stringify(name)}${required.includes(name) ? '' : '?'}: ${type(schema)}${required.includes(name) ? '' : ' | undefined'};`,
  );
  const rest = others ? ['readonly [name: string]: unknown;'] : [];
  return `{\n${indented([...lines, ...rest].join('\n'))}\n}`;
}

/** @param {Schema} schema */
function comment({ description }) {
  return typeof description === 'string' ? `/** ${description} */\n` : '';
}

/** @param {string} name */
function camel(name) {
  return name.replaceAll(/_(\w)/g, (_, letter) => letter.toUpperCase());
}

/** @param {string} text */
function indented(text) {
  return text.replaceAll(/^/gm, '  ');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  writeClient(path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..'));
