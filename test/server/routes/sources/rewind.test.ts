import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { movePositions, readPositions, recordPositions } from '#store/config/source-positions';
import { insertSource } from '#store/config/sources';
import { makeProject, mistakes, startApi, type Api } from '../../api.js';

const rewind = suite('server/routes/sources/rewind');

let api: Api;
rewind.before(async () => {
  api = await startApi();
});
rewind.after(() => api.close());

const kafka = {
  name: 'orders',
  type: 'pub_sub',
  pub_sub: { type: 'kafka', workers: 1, kafka: { brokers: ['127.0.0.1:1'], topic_name: 'orders' } },
  body_function: null,
  is_disabled: false,
} as const;

rewind('a move names one place, and a source that can be moved', async () => {
  const { id, path } = await makeProject(api);
  const source = await insertSource(api.db.knex, id, kafka);
  const queue = await insertSource(api.db.knex, id, {
    ...kafka,
    name: 'queue',
    pub_sub: { type: 'sqs', workers: 1, sqs: {} },
  });
  const ask = async (of: string, body: object) =>
    mistakes(await api.call('POST', `${path}/sources/${of}/rewind`, body));
  assert.match((await ask(source.id, {})).join(), 'must be given, or positions, and not both');
  assert.match(
    (await ask(source.id, { to: 'yesterday' })).join(),
    'must be earliest, latest or a time',
  );
  assert.match((await ask(source.id, { to: 'latest', positions: { 0: '1' } })).join(), 'not both');
  assert.match((await ask(queue.id, { to: 'latest' })).join(), 'type sqs, which cannot be moved');
});

rewind('a source whose broker is away is not moved, and read again', async () => {
  const { id, path } = await makeProject(api);
  const source = await insertSource(api.db.knex, id, kafka);
  const { status, body } = await api.call('POST', `${path}/sources/${source.id}/rewind`, {
    to: 'earliest',
  });
  assert.is(status, 422);
  assert.is(body.code, 'source_not_moved');
  const { paused_at } = (await api.call('GET', `${path}/sources/${source.id}`)).body.data as {
    paused_at: string | null;
  };
  assert.is(paused_at, null);
});

rewind('a run that began before a move does not overwrite its positions', async () => {
  const { id: projectId } = await makeProject(api);
  const { id: sourceId } = await insertSource(api.db.knex, projectId, kafka);
  const of = { projectId, sourceId };
  const { pool } = api.db;
  const position = async () => (await readPositions(pool, of)).positions.get('orders/0');
  const { readAt: runBeganAt } = await readPositions(pool, of);
  const record = (to: string, since: Date) =>
    recordPositions(pool, [{ ...of, name: 'orders/0', position: to, runBeganAt: since }]);
  await record('8', runBeganAt);
  await movePositions(pool, of, [{ name: 'orders/0', position: '2' }]);
  await record('9', runBeganAt);
  assert.is(await position(), '2');
  await record('3', (await readPositions(pool, of)).readAt);
  assert.is(await position(), '3');
});

rewind.run();
