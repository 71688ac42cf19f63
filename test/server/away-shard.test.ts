import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { addShard, SECOND, type Shard } from '../support/shard.js';
import { until } from '../support/until.js';
import { makeProject, startApi, type Api } from './api.js';

const away = suite('server/away-shard');

let api: Api;
let shard: Shard;

away.before(async () => {
  api = await startApi();
  shard = await addShard(api.db);
});
away.after(async () => {
  await api.close();
  await shard.close();
});

async function post(path: string, n: number): Promise<string> {
  const event = { event_type: 'order.paid', data: { n } };
  const { status, body } = await api.call('POST', `${path}/events`, event);
  assert.is(status, 201, JSON.stringify(body));
  return (body.data as { uid: string }).uid;
}

away('a shard that is away fails only the requests of its projects', async () => {
  const [stays, gone] = [await makeProject(api), await makeProject(api)];
  await api.db.rows('update projects set shard = $2 where id = $1', [gone.id, SECOND]);
  await post(gone.path, 1);
  await api.db.rows(`update shards set port = 1 where name = $1`, [SECOND]);
  await until('the server to follow the address', async () => {
    const { body } = await api.call('GET', `${gone.path}/events`);
    return body.code === 'shard_away';
  });
  const event = { event_type: 'order.paid', data: {} };
  const refused = await api.call('POST', `${gone.path}/events`, event);
  assert.is(refused.status, 503);
  assert.is(refused.body.code, 'shard_away');
  assert.match(refused.body.message, 'the database of the shard second is unavailable');
  assert.is(refused.headers.get('retry-after'), '5');
  await post(stays.path, 1);
  assert.is((await api.call('GET', `${stays.path}/events`)).status, 200);
  const ready = await api.call('GET', '/healthz?ready');
  assert.is(ready.status, 200);
  assert.match(ready.text, 'shard');
  const { body } = await api.call('GET', `${gone.path}/health`);
  assert.match(body.message, 'The shard of the project cannot be used');
  await api.db.rows(`update shards set port = $2 where name = $1`, [
    SECOND,
    Number(new URL(shard.url).port),
  ]);
  await until(
    'the shard to be used again',
    async () => (await api.call('POST', `${gone.path}/events`, event)).status === 201,
  );
});

away.run();
