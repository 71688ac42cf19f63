import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { connectionOf } from '../support/database.js';
import { proxy } from '../support/proxy.js';
import { addShard, SECOND } from '../support/shard.js';
import { until, within } from '../support/until.js';
import { makeProject, startApi, type Answer } from './api.js';

const frozen = suite('server/frozen-shard');

/** How long a request may take that no shard delays. Before, they took 3 s or more. */
const QUICK_MS = 1_500;

const api = await startApi();
const shard = await addShard(api.db);
const line = await proxy({ port: connectionOf(shard.url).port });
frozen.after(async () => {
  line.restore();
  await api.close();
  await shard.close();
  await line.close();
});

/** Asks until an answer is quick: the speed of the machine must not decide. */
function quick(what: string, ask: () => Promise<Answer>): Promise<Answer> {
  return until(`${what} to be answered quickly`, async () => {
    const startedAtMs = performance.now();
    const answer = await ask();
    return performance.now() - startedAtMs < QUICK_MS && answer;
  });
}

frozen('a shard that is frozen delays the requests of its projects alone', async () => {
  await api.db.rows('update shards set port = $1 where name = $2', [line.port, SECOND]);
  const [stays, gone] = [await makeProject(api), await makeProject(api)];
  await api.db.rows('update projects set shard = $1 where id = $2', [SECOND, gone.id]);
  const ready = () => api.call('GET', '/healthz?ready');
  const post = ({ path }: typeof stays) =>
    api.call('POST', `${path}/events`, { event_type: 'order.paid', data: {} });
  await until('posts to all', async () => {
    const answers = await Promise.all([stays, gone].map(post));
    return answers.every(({ status }) => status === 201);
  });
  await until('the shard to be known', async () => (await ready()).text.includes('shard second'));
  line.freeze();
  // Sent at once: each is the first that meets the frozen shard.
  const [first, ...others] = await Promise.all([
    within(post(gone), 20_000, 'the first post to the shard'),
    quick('readiness', ready),
    quick('a post to another shard', () => post(stays)),
    quick('health of another shard', () => api.call('GET', `${stays.path}/health`)),
  ]);
  assert.equal([first.status, first.body.code], [503, 'shard_away']);
  assert.equal(
    others.map(({ status }) => status),
    [200, 201, 200],
  );
  await until('health to name the shard', async () =>
    (await ready()).body.message.startsWith('ready, but shard second is degraded'),
  );
  const again = await within(post(gone), 4_500, 'a post while the outage is known');
  assert.equal([again.status, again.body.code], [503, 'shard_away']);
  assert.match(again.body.message, 'nothing was stored', 'it is not begun');
  await quick('readiness', ready);
  const { body } = await quick('health of the shard', () => api.call('GET', `${gone.path}/health`));
  assert.match(body.message, 'The shard of the project cannot be used');
  await quick('the health of the instance', () => api.call('GET', '/instance/health'));
  await within(api.call('GET', '/shards'), 4_500, 'the list of shards');
  // An operator gives it another address, while statements on the frozen one hang.
  await api.db.rows('update shards set port = $1 where name = $2', [
    connectionOf(shard.url).port,
    SECOND,
  ]);
  await until('the new address', async () => (await post(gone)).status === 201, {
    withinMs: 20_000,
  });
});

frozen.run();
