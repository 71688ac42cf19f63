import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { importEventTypes } from '#store/config/event-types';
import { makeProject, startApi, type Api } from '../api.js';

const eventTypes = suite('server/routes/event-types');

let api: Api;
let path: string;
eventTypes.before(async () => {
  api = await startApi();
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
  const next = await api.call('GET', `${path}/event-types?perPage=2&sort=ASC&next_page_cursor=${body.data.pagination.next_page_cursor}`);
  assert.equal([next.body.data.content.length, next.body.data.content[0].deprecated_at !== null], [1, true]);
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

eventTypes.run();
