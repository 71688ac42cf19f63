// @ts-check
import prettier from 'prettier';
import { createsOnce, openApiDocument, operationsOf } from '@gateway/server/openapi';
import { routes } from '@gateway/server/routes';

/** @typedef {import('@gateway/server/openapi').Schema} Schema */

/**
 * Generates a type for each named schema and a method for each route of `@gateway/client`.
 * @returns {Promise<string>} TypeScript
 */
export async function clientSource() {
  const { components, paths } = openApiDocument(routes, { version: '', rootPath: '' });
  const types = Object.entries(components.schemas)
    .filter(([name]) => name !== 'Error')
    .map(([name, schema]) => declaration(name, schema));
  /** @type {Map<string, string[]>} */
  const groups = new Map();
  for (const { group, ...operation } of operationsOf(routes)) {
    const described = paths[operation.path]?.[operation.route.method];
    if (described)
      groups.set(group, [...(groups.get(group) ?? []), method(group, operation, described)]);
  }
  const members = [...groups].map(([group, methods]) => `${group}: {\n${methods.join('\n')}\n},`);
  const text = `// Made from the document of the API by \`npm run docs\`: change the routes of the server instead.
import type { Caller, CallOptions } from './call.js';
import type { Pages } from './pages.js';

${types.join('\n\n')}

/** The methods of the client by resource. */
export function resources({ call, list }: Caller) {
  return {
${members.join('\n')}
  };
}

export type Resources = ReturnType<typeof resources>;
`;
  return prettier.format(text, {
    parser: 'typescript',
    ...(await prettier.resolveConfig(new URL('../../package.json', import.meta.url))),
  });
}

/**
 * @param {string} group
 * @param {Omit<import('@gateway/server/openapi').Operation, 'group'>} operation
 * @param {any} described
 */
function method(
  group,
  { name, path, parameters, route },
  { requestBody, responses, parameters: all = [] },
) {
  const answer = responses[route.status ?? 200].content['application/json'].schema.properties.data;
  const row = answer.properties?.pagination && answer.properties.content.items;
  const given = parameters.filter((it) => it !== 'project_id' || group === 'projects');
  /** @type {{ name: string, required: boolean, description?: string, schema: Schema }[]} */
  const inQuery = all.filter(
    (/** @type {{ in: string, name: string }} */ it) =>
      it.in === 'query' && !(row && it.name === 'page'),
  );
  const isNeeded = inQuery.some(({ required }) => required);
  const query = members(
    Object.fromEntries(
      inQuery.map((it) => [it.name, { ...it.schema, description: it.description }]),
    ),
    inQuery.filter(({ required }) => required).map((it) => it.name),
  );
  const takes = [
    ...given.map((it) => `${camel(it)}: string`),
    ...(requestBody ? [`body: ${type(requestBody.content['application/json'].schema)}`] : []),
    ...(inQuery.length > 0 ? [`query${isNeeded ? '' : '?'}: ${query}`] : []),
    'options?: CallOptions',
  ];
  const passes = [
    `method: '${route.method.toUpperCase()}', path: '${path}'`,
    ...(given.length > 0
      ? [`parameters: { ${given.map((it) => `${it}: ${camel(it)}`).join(', ')} }`]
      : []),
    ...(requestBody ? ['body'] : []),
    ...(inQuery.length > 0 ? ['query'] : []),
    ...(createsOnce(route) ? ['isCreatedOnce: true'] : []),
    'options',
  ];
  return `/** ${route.summary} */
${name}: (${takes.join(', ')}): ${row ? `Pages<${type(row)}>` : `Promise<${type(answer)}>`} => ${row ? 'list' : 'call'}({ ${passes.join(', ')} }),`;
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
      return typeof schema.additionalProperties === 'object'
        ? `Readonly<Record<string, ${type(schema.additionalProperties)}>>`
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
  return `{\n${[...lines, ...rest].join('\n')}\n}`;
}

/** @param {Schema} schema */
function comment({ description }) {
  return typeof description === 'string' ? `/** ${description} */\n` : '';
}

/** @param {string} name */
function camel(name) {
  return name.replaceAll(/_(\w)/g, (_, letter) => letter.toUpperCase());
}
