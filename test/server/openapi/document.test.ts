import { createConfig, lintFromString } from '@redocly/openapi-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openApiDocument } from '#server/openapi/document';
import { accountRoute, projectRoute } from '#server/api/route';
import { ignoring, integer, named, object, oneOf, Timestamp } from '#server/http/schema';
import { description } from '../described.js';

const document = suite('server/openapi/document');

document('a linter of OpenAPI documents finds nothing', async () => {
  const problems = await lintFromString({
    source: JSON.stringify(description),
    config: await createConfig({ extends: ['recommended'] }),
  });
  assert.equal(
    problems.map(
      ({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`,
    ),
    [],
  );
});

const of = (...routes: Parameters<typeof openApiDocument>[0]) =>
  openApiDocument(routes, { version: '1', rootPath: '/base' });
const run = () => Promise.reject(new Error('it is not run'));

document('a route is described by its schemas: parameters, body, answer and errors', () => {
  const Thing = named(
    'Thing',
    object({ title: oneOf(['a', 'b'], { 'x-sentence': 'must be short' }) }),
  );
  const it = of(
    projectRoute(
      'PUT /endpoints/:id',
      'Changes.',
      { body: Thing, data: Thing, query: object({ force: integer(0, 1, 'All the same.') }) },
      run,
    ),
  );
  assert.equal(it.servers, [{ url: '/base/api/v1' }]);
  assert.equal(it.components.schemas['Thing'], {
    type: 'object',
    additionalProperties: false,
    required: ['title'],
    properties: { title: { type: 'string', enum: ['a', 'b'] } },
  });
  const { operationId, parameters, requestBody, responses } =
    it.paths['/projects/{project_id}/endpoints/{id}']!['put']!;
  assert.is(operationId, 'endpointsUpdate');
  assert.equal(
    parameters!.map((parameter) => `${parameter.in} ${parameter.name} ${parameter.required}`),
    ['path project_id true', 'path id true', 'query force true'],
  );
  assert.equal(requestBody!.content['application/json'].schema, {
    $ref: '#/components/schemas/Thing',
  });
  assert.match(JSON.stringify(responses['200']), '"data":{"$ref":"#/components/schemas/Thing"}');
  assert.equal(Object.keys(responses), [
    '200',
    '400',
    '401',
    '403',
    '404',
    '409',
    '413',
    '415',
    '422',
    '429',
    '500',
    '503',
  ]);
});

document('fields that are ignored are left out', () => {
  const body = ignoring(['oldName'], object({ old_name: Timestamp }));
  const { requestBody } = of(accountRoute('POST /endpoints', 'Creates.', { body }, run)).paths[
    '/endpoints'
  ]!['post']!;
  assert.equal(requestBody!.content['application/json'].schema['properties'], {
    old_name: { type: 'string', format: 'date-time' },
  });
});

document('basic authentication is offered only where it has accounts', () => {
  assert.equal(Object.keys(description.components['securitySchemes'] as object), ['key']);
  const { security } = openApiDocument([], {
    version: '1',
    rootPath: '',
    hasBasic: true,
  }) as unknown as { security: unknown };
  assert.equal(security, [{ key: [] }, { basic: [] }]);
});

/**
 * All schemas of the document with the names that generators derive: the component's, then those of
 * properties and elements.
 */
function* schemasOf(
  schema: Described,
  name: string,
  at: string,
): Generator<[schema: Described, name: string, at: string]> {
  yield [schema, name, at];
  for (const [property, it] of Object.entries(schema.properties ?? {}))
    yield* schemasOf(it, `${name} ${property}`, `${at}.${property}`);
  if (schema.items) yield* schemasOf(schema.items, `${name} item`, `${at}[]`);
  if (typeof schema.additionalProperties === 'object')
    yield* schemasOf(schema.additionalProperties, `${name} item`, `${at}{}`);
}

interface Described {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Described>>;
  readonly items?: Described;
  readonly additionalProperties?: boolean | Described;
}

const plain = (name: string) => name.replaceAll(/[^a-z0-9]/gi, '').toLowerCase();
const SUFFIXES = ['', 'Body', 'Params', 'Req', 'Request', 'Res', 'Response'];

document(
  'generators of others know every keyword, and no two of the names that they make are one',
  () => {
    const { components, paths } = description;
    const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
    const bodies = operations.flatMap(({ operationId, responses }) =>
      Object.entries(responses).map(([status, answer]): [Described, string] => [
        ((answer as Answered).content?.['application/json'].schema ?? {}) as Described,
        `${operationId} Response ${status}`,
      ]),
    );
    const named = Object.entries(components.schemas).map(([name, schema]): [Described, string] => [
      schema as Described,
      name,
    ]);
    const all = [...named, ...bodies].flatMap(([schema, name]) => [
      ...schemasOf(schema, name, name),
    ]);
    const problems: string[] = [];
    const taken = new Map<string, string>(
      operations.flatMap(({ operationId: id }) =>
        SUFFIXES.map((it) => [plain(id + it), `operation ${id}`]),
      ),
    );
    for (const [schema, name, at] of all) {
      const unknown = ['anyOf', 'oneOf', 'allOf', 'not', 'if', 'patternProperties'].filter(
        (keyword) => keyword in schema,
      );
      if (unknown.length > 0) problems.push(`${at} has ${unknown.join(', ')}`);
      const types = [schema.type ?? []].flat();
      if (types.filter((it) => it !== 'null').length > 1) problems.push(`${at} has several types`);
      if ('const' in schema && types.length === 0)
        problems.push(`${at} has a constant and no type`);
      if (types.includes('object') && !schema.properties && !schema.additionalProperties)
        problems.push(`${at} can have no member`);
      for (const names of [Object.keys(schema.properties ?? {}), (schema.enum ?? []).map(String)])
        if (new Set(names.map(plain)).size < names.length)
          problems.push(`${at} has names that differ by case or signs only: ${names.join(', ')}`);
      if (!types.includes('object') && !schema.enum && name.includes(' ')) continue;
      const before = taken.get(plain(name));
      if (before !== undefined) problems.push(`${at} gets the name of ${before}`);
      taken.set(plain(name), at);
    }
    assert.equal(problems, []);
  },
);

interface Answered {
  readonly content?: { readonly 'application/json': { readonly schema: unknown } };
}

document('two routes or two schemas of one name are a mistake', () => {
  const route = accountRoute('GET /endpoints', 'Lists.', {}, run);
  assert.throws(
    () => of(route, { ...route, path: '/endpoints/other', name: 'list' }),
    /endpoints\/other: another route is endpoints\.list/,
  );
  const [one, other] = [Timestamp, integer(0, 1, 'A number.')].map((type) => named('Same', type));
  assert.throws(
    () => of({ ...route, data: one! }, { ...route, path: '/sources', data: other! }),
    /two schemas are called Same/,
  );
});

document(
  'there is nothing in it of which OpenAPI Generator makes clients that do not compile',
  () => {
    const { schemas } = description.components;
    for (const name of Object.keys(schemas))
      assert.not.ok(`New${name}` in schemas, `a constructor of ${name} in Go is called New${name}`);
    const named = new Set<unknown>(Object.values(schemas));
    const visit = (value: unknown, place: string): void => {
      if (typeof value !== 'object' || value === null) return;
      const {
        type,
        const: constant,
        additionalProperties: others,
        uniqueItems,
        items,
      } = value as Record<string, unknown>;
      assert.is.not(type, 'null', `${place}: type null`);
      assert.is.not(typeof constant, 'boolean', `${place}: a constant that is no string`);
      assert.not.ok(
        Array.isArray(type) && typeof others === 'object' && !named.has(value),
        `${place}: a map that may be null has no name`,
      );
      // https://github.com/OpenAPITools/openapi-generator/issues/17004
      assert.not.ok(
        uniqueItems && 'enum' in (items as object),
        `${place}: an enum in a set has no name`,
      );
      for (const [name, inner] of Object.entries(value)) visit(inner, `${place}/${name}`);
    };
    visit(description, '');
  },
);

document.run();
