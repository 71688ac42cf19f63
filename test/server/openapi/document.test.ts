import { createConfig, lintFromString } from '@redocly/openapi-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openApiDocument } from '#server/openapi/document';
import { accountRoute, projectRoute } from '#server/api/route';
import { ignoring, integer, named, object, oneOf, Timestamp } from '#server/http/schema';
import { description } from '../described.js';

const document = suite('server/openapi/document');

document('a linter of OpenAPI documents finds nothing', async () => {
  const problems = await lintFromString({ source: JSON.stringify(description), config: await createConfig({ extends: ['recommended'] }) });
  assert.equal(
    problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`),
    [],
  );
});

const of = (...routes: Parameters<typeof openApiDocument>[0]) => openApiDocument(routes, { version: '1', rootPath: '/base' });
const run = () => Promise.reject(new Error('it is not run'));

document('a route is described by its schemas: parameters, body, answer and errors', () => {
  const Thing = named('Thing', object({ title: oneOf(['a', 'b'], { 'x-sentence': 'must be short' }) }));
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
  const { operationId, parameters, requestBody, responses } = it.paths['/projects/{project_id}/endpoints/{id}']!['put']!;
  assert.is(operationId, 'endpointsUpdate');
  assert.equal(
    parameters!.map((parameter) => `${parameter.in} ${parameter.name} ${parameter.required}`),
    ['path project_id true', 'path id true', 'query force true'],
  );
  assert.equal(requestBody!.content['application/json'].schema, { $ref: '#/components/schemas/Thing' });
  assert.match(JSON.stringify(responses['200']), '"data":{"$ref":"#/components/schemas/Thing"}');
  assert.equal(Object.keys(responses), ['200', '400', '401', '403', '404', '409', '413', '415', '422', '429', '500', '503']);
});

document('fields that are ignored are described as such', () => {
  const body = ignoring(['old'], object({ name: Timestamp }));
  const { requestBody } = of(accountRoute('POST /endpoints', 'Creates.', { body }, run)).paths['/endpoints']!['post']!;
  assert.equal(requestBody!.content['application/json'].schema['properties'], {
    name: { type: 'string', format: 'date-time' },
    old: { deprecated: true, description: 'Accepted and ignored.' },
  });
});

document('two routes or two schemas of one name are a mistake', () => {
  const route = accountRoute('GET /endpoints', 'Lists.', {}, run);
  assert.throws(
    () => of(route, { ...route, path: '/endpoints/other', name: 'list' }),
    /endpoints\/other: another route is endpoints\.list/,
  );
  const [one, other] = [Timestamp, integer(0, 1, 'A number.')].map((type) => named('Same', type));
  assert.throws(() => of({ ...route, data: one! }, { ...route, path: '/sources', data: other! }), /two schemas are called Same/);
});

document.run();
