import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { importEventTypes } from '#store/config/event-types';
import { makeProject, mistakes, startApi, type Api } from '../api.js';

const eventTypes = suite('server/routes/event-types');

let api: Api;
let path: string;
eventTypes.before(async () => {
  api = await startApi({ file: { limits: { event_types_per_project: 4 } } });
  const project = await makeProject(api);
  ({ path } = project);
  await importEventTypes(
    api.db.knex,
    project.id,
    ['order.paid', 'order.refunded', 'order.lost'].map((name, n) => ({
      name,
      description: `The order ${n}.`,
      schema: { type: 'object', minProperties: n },
      deprecated: n === 2,
    })),
  );
});
eventTypes.after(() => api.close());

eventTypes('imported event types are listed with their schemas, a page at a time', async () => {
  const { status, body } = await api.call('GET', `${path}/event-types?perPage=2&sort=ASC`);
  assert.is(status, 200);
  assert.equal(
    body.data.content.map((it: { name: string }) => it.name),
    ['order.paid', 'order.refunded'],
  );
  assert.equal(body.data.content[1].json_schema, { type: 'object', minProperties: 1 });
  const next = await api.call(
    'GET',
    `${path}/event-types?perPage=2&sort=ASC&next_page_cursor=${body.data.pagination.next_page_cursor}`,
  );
  assert.equal(
    [next.body.data.content.length, next.body.data.content[0].deprecated_at !== null],
    [1, true],
  );
});

eventTypes('one is found by its name and shown by its id', async () => {
  const { body } = await api.call('GET', `${path}/event-types?name=order.refunded`);
  const [found] = body.data.content as { uid: string; description: string }[];
  assert.is(found?.description, 'The order 1.');
  assert.equal((await api.call('GET', `${path}/event-types/${found?.uid}`)).body.data, found);
});

eventTypes('one that is not there, or of another project, is not found', async () => {
  const { body } = await api.call('GET', `${path}/event-types`);
  const other = await makeProject(api);
  for (const uid of [newId(), body.data.content[0].uid as string]) {
    const { status, body: answer } = await api.call('GET', `${other.path}/event-types/${uid}`);
    assert.equal([status, answer.code], [404, 'not_found']);
  }
  assert.equal((await api.call('GET', `${other.path}/event-types`)).body.data.content, []);
});

eventTypes('one is created once, changed, deprecated, and taken back', async () => {
  const { path: mine } = await makeProject(api);
  const given = {
    name: 'order.paid',
    description: 'Paid.',
    json_schema: { type: 'object', required: ['total'] },
    example: { total: 1.5 },
  };
  const created = await api.call('POST', `${mine}/event-types`, given);
  assert.is(created.status, 201);
  const { uid, deprecated_at, ...shown } = created.body.data;
  assert.equal(
    [shown.name, shown.description, shown.json_schema, shown.example, deprecated_at],
    [...Object.values(given), null],
  );
  assert.ok(created.headers.get('location')?.endsWith(`/event-types/${uid}`));
  const again = await api.call('POST', `${mine}/event-types`, given);
  assert.equal(
    [again.status, again.body.message],
    [409, 'the project already has an event type order.paid'],
  );

  const change = async (fields: object) =>
    (await api.call('PUT', `${mine}/event-types/${uid}`, fields)).body.data;
  assert.equal((await change({ description: 'It was paid.' })).json_schema, given.json_schema);
  assert.equal(await change({ json_schema: null }).then((it) => [it.json_schema, it.example]), [
    null,
    given.example,
  ]);
  assert.equal(await change({ example: [] }).then((it) => it.example), []);
  assert.is((await change({ example: null })).example, null);
  const first = (await api.call('POST', `${mine}/event-types/${uid}/deprecate`)).body.data
    .deprecated_at;
  assert.type(first, 'string');
  assert.is((await change({ deprecated: true })).deprecated_at, first);
  assert.is((await change({ deprecated: false })).deprecated_at, null);
  for (const [method, rest] of [
    ['PUT', ''],
    ['POST', '/deprecate'],
  ] as const)
    assert.is(
      (
        await api.call(
          method,
          `${path}/event-types/${uid}${rest}`,
          method === 'PUT' ? {} : undefined,
        )
      ).status,
      404,
      'of another project',
    );
});

eventTypes('a schema that is none names the place', async () => {
  const { path: mine } = await makeProject(api);
  const wrong = { type: 'object', properties: { total: { type: 'money' } } };
  const answer = await api.call('POST', `${mine}/event-types`, {
    name: 'order.paid',
    json_schema: wrong,
  });
  assert.is(answer.status, 422);
  assert.match(mistakes(answer).join(), /^json_schema\.properties\.total\.type /);
  const created = await api.call('POST', `${mine}/event-types`, {
    name: 'order.old',
    json_schema: true,
    deprecated: true,
  });
  assert.equal(
    [created.body.data.json_schema, created.body.data.deprecated_at !== null],
    [true, true],
  );
});

eventTypes('event types are found by a part of their name or description', async () => {
  const { path: mine } = await makeProject(api);
  await api.call('POST', `${mine}/event-types`, {
    name: 'order.paid',
    description: 'Money has come in',
  });
  await api.call('POST', `${mine}/event-types`, { name: 'order.shipped' });
  const found = async (q: string) =>
    (await api.call('GET', `${mine}/event-types?q=${q}`)).body.data.content.map(
      (it: { name: string }) => it.name,
    );
  assert.equal(
    [await found('ORDER'), await found('money'), await found('refund')],
    [['order.shipped', 'order.paid'], ['order.paid'], []],
  );
});

eventTypes('limits.event_types_per_project: no more are created', async () => {
  const { path: mine } = await makeProject(api);
  const create = (n: number) => api.call('POST', `${mine}/event-types`, { name: `order.${n}` });
  const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(create));
  const full = answers.filter(({ status }) => status !== 201);
  assert.is(full.length, 2);
  assert.is(full[0]!.status, 422);
  assert.match(full[0]!.body.message, 'limits.event_types_per_project');
});

const webhook = (schema: unknown) => ({
  post: { summary: 'It came.', requestBody: { content: { 'application/json': { schema } } } },
});
const document = (webhooks: object, more: object = {}) => ({
  openapi: '3.1.0',
  info: { title: 't', version: '1' },
  webhooks,
  ...more,
});

eventTypes('an OpenAPI document creates event types, and changes them the next time', async () => {
  const { path: mine } = await makeProject(api);
  const post = async (body: unknown) => api.call('POST', `${mine}/event-types/import`, body);
  const components = {
    schemas: { Order: { type: 'object', required: ['id'], examples: [{ id: 'o_1' }] } },
  };
  const first = document(
    {
      'order.paid': webhook({ $ref: '#/components/schemas/Order' }),
      'order.lost': webhook({ type: 'object' }),
    },
    { components },
  );
  const { status, body } = await post(first);
  assert.equal([status, body.data.created, body.data.updated, body.data.unchanged], [200, 2, 0, 0]);
  const [stored] = (await api.call('GET', `${mine}/event-types?name=order.paid`)).body.data.content;
  assert.equal(
    [stored.description, stored.json_schema.required, stored.example],
    ['It came.', ['id'], { id: 'o_1' }],
  );
  const again = (
    await post(
      document({ ...first.webhooks, 'order.lost': webhook({ type: 'string' }) }, { components }),
    )
  ).body.data;
  assert.equal([again.created, again.updated, again.unchanged], [0, 1, 1]);
});

eventTypes('several documents are imported together, or none of them', async () => {
  const { path: mine } = await makeProject(api);
  const post = async (...documents: unknown[]) =>
    (await api.call('POST', `${mine}/event-types/import`, { documents })).body;
  const [first, second] = [document({ a: webhook({}) }), document({ b: webhook({}) })];
  const { message } = await post(first, first);
  assert.match(message, 'a is declared twice: by the document#/webhooks/a/post and by document 2#');
  assert.match((await post(first, { swagger: '2.0' })).message, 'document 2: it is Swagger "2.0"');
  assert.is((await post(first, second)).data.created, 2);
});

eventTypes(
  'a document that is none, refers to files, is too much or too many is refused whole',
  async () => {
    const { path: mine } = await makeProject(api);
    const post = async (body: unknown) => {
      const answer = await api.call('POST', `${mine}/event-types/import`, body);
      return [answer.status, answer.body.message] as const;
    };
    assert.equal(await post({ swagger: '2.0' }), [
      422,
      'the document: it is Swagger "2.0", which has no webhooks',
    ]);
    for (const ref of ['/etc/passwd', '../secrets.json#/a', 'file:///etc/passwd'])
      assert.equal(await post(document({ a: webhook({ $ref: ref }) })), [
        422,
        'the document: it refers to another file',
      ]);
    assert.match(
      (await post(document({ a: webhook({ $ref: 'http://127.0.0.1:1/a.json' }) })))[1],
      'no URL is read',
    );
    const five = Object.fromEntries([1, 2, 3, 4, 5].map((n) => [`type.${n}`, webhook({})]));
    assert.match((await post(document(five)))[1], 'limits.event_types_per_project');
    const large = {
      schemas: { Large: { enum: Array.from({ length: 20_000 }, (_, n) => `value ${n}`) } },
    };
    const many = Object.fromEntries(
      Array.from({ length: 20 }, (_, n) => [
        `type.${n}`,
        webhook({ $ref: '#/components/schemas/Large' }),
      ]),
    );
    assert.match(
      (await post(document(many, { components: large })))[1],
      'more than 2000000 characters',
    );
    assert.equal((await api.call('GET', `${mine}/event-types`)).body.data.content, []);
  },
);

eventTypes(
  'a project that rejects unknown event types takes those that it has, from the moment that it has them',
  async () => {
    const { path: mine } = await makeProject(api, { config: { unknown_event_types: 'reject' } });
    const post = (type: string) =>
      api.call('POST', `${mine}/events`, { event_type: type, data: {} });
    const unknown = await post('order.paid');
    assert.equal(
      [unknown.status, mistakes(unknown)[0]?.slice(0, 40)],
      [422, 'event_type is not an event type of this '],
    );
    const { uid } = (await api.call('POST', `${mine}/event-types`, { name: 'order.paid' })).body
      .data;
    assert.is((await post('order.paid')).status, 201);
    await api.call('POST', `${mine}/event-types/${uid}/deprecate`);
    assert.is((await post('order.paid')).status, 201, 'deprecated types are accepted');
    const events = ['order.paid', 'order.lost'].map((type) => ({ event_type: type, data: {} }));
    const batch = (await api.call('POST', `${mine}/events/batch`, { events })).body.data;
    assert.equal(
      [batch.created, batch.rejected, batch.content[1].errors[0].field],
      [1, 1, 'events.1.event_type'],
    );
    const endpoint = (
      await api.call('POST', `${mine}/endpoints`, { name: 'a', url: 'https://example.com' })
    ).body.data.uid;
    assert.is(
      (await api.call('POST', `${mine}/endpoints/${endpoint}/test`, {})).status,
      201,
      'a test needs no event type',
    );
    await api.call('PUT', mine, { config: { unknown_event_types: 'accept' } });
    assert.is((await post('order.lost')).status, 201);
  },
);

eventTypes.run();
