import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { addShard, SECOND, type Shard } from '../support/shard.js';
import { until } from '../support/until.js';
import { makeProject, startApi, type Api } from './api.js';

const moved = suite('server/moved-project');

let api: Api;
let shard: Shard;

moved.before(async () => {
  api = await startApi();
  shard = await addShard(api.db);
});
moved.after(async () => {
  await api.close();
  await shard.close();
});

async function post(path: string, n: number): Promise<string> {
  const event = { event_type: 'order.paid', data: { n } };
  const { status, body } = await api.call('POST', `${path}/events`, event);
  assert.is(status, 201, JSON.stringify(body));
  return (body.data as { uid: string }).uid;
}

/** Moves the project as `gateway shards move` does, and waits until the server knows. */
async function move(id: string): Promise<void> {
  await api.db.rows(
    `update projects set shard = $2, former_shards = '{default}', updated_at = now() where id = $1`,
    [id, SECOND],
  );
  await api.db.rows(`update projects set config = config where id = $1`, [id]);
  // Records of the server are a second old at most.
  await new Promise((resolve) => setTimeout(resolve, 2_500));
}

const idsOf = ({ body }: Awaited<ReturnType<Api['call']>>) =>
  (body.data as { content: { uid: string }[] }).content.map(({ uid }) => uid);

moved('events from before and after a move are listed in order, page by page', async () => {
  const { path, id } = await makeProject(api);
  const before = [await post(path, 1), await post(path, 2), await post(path, 3)];
  await move(id);
  const after = [await post(path, 4), await post(path, 5)];
  const stored = await shard.rows<{ id: string }>('select id from events order by id');
  assert.equal(
    stored.map((row) => row.id),
    after,
  );
  const newestFirst = [...before, ...after].reverse();
  assert.equal(idsOf(await api.call('GET', `${path}/events`)), newestFirst);
  const seen: string[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const query = `perPage=2${cursor === '' ? '' : `&next_page_cursor=${cursor}&direction=next`}`;
    const page = await api.call('GET', `${path}/events?${query}`);
    seen.push(...idsOf(page));
    const { pagination } = page.body.data as {
      pagination: { has_next_page: boolean; next_page_cursor: string };
    };
    cursor = pagination.has_next_page ? pagination.next_page_cursor : null;
  }
  assert.equal(seen, newestFirst);
  for (const uid of [before[0], after[0]]) {
    assert.is((await api.call('GET', `${path}/events/${uid}`)).status, 200);
    assert.is((await api.call('GET', `${path}/events/${uid}/explain`)).status, 200);
  }
  const { body } = await api.call('GET', `${path}/summary`);
  assert.is((body.data as { pending_events: number }).pending_events, 5);
});

moved('a replay acts on the shard of the event, and a batch on all', async () => {
  const { path, id } = await makeProject(api);
  const before = await post(path, 1);
  await move(id);
  const after = await post(path, 2);
  for (const rows of [api.db.rows, shard.rows])
    await rows(
      `update events set status = 'processed', outcome = 'no_subscription' where project_id = $1`,
      [id],
    );
  assert.is((await api.call('PUT', `${path}/events/${before}/replay`)).status, 200);
  const statuses = async () =>
    [
      ...(await api.db.rows<{ status: string }>('select status from events where id = $1', [
        before,
      ])),
      ...(await shard.rows<{ status: string }>('select status from events where id = $1', [after])),
    ].map(({ status }) => status);
  assert.equal(await statuses(), ['pending', 'processed']);
  assert.is((await api.kv.queue('create-event').depth()) > 0, true);
  await api.db.rows(
    `update events set status = 'processed', outcome = 'no_subscription' where id = $1`,
    [before],
  );
  const { body } = await api.call('POST', `${path}/events/batchreplay?startDate=2020-01-01`);
  assert.equal(body.data, { count: 2, dry_run: false, next: null }, JSON.stringify(body));
  assert.equal(await statuses(), ['pending', 'pending']);
  await until(
    'the signal of the second shard',
    async () => (await api.kv.queue(`create-event:${SECOND}`).depth()) > 0,
  );
});

moved('a shard that is away fails only the requests of its projects', async () => {
  const [stays, gone] = [await makeProject(api), await makeProject(api)];
  await move(gone.id);
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

moved('a former shard that is away fails only posts that it may have the key of', async () => {
  const [stays, left] = [await makeProject(api), await makeProject(api)];
  await api.db.rows(`update projects set former_shards = $2, moved_at = now() where id = $1`, [
    left.id,
    [SECOND],
  ]);
  await api.db.rows(`update shards set port = 1 where name = $1`, [SECOND]);
  const event = { event_type: 'order.paid', data: {} };
  const posted = (path: string, key?: string) =>
    api.call('POST', `${path}/events`, { ...event, ...(key && { idempotency_key: key }) });
  await until(
    'the server to follow the address',
    async () => (await posted(left.path, 'a')).body.code === 'shard_away',
  );
  assert.is((await posted(left.path)).status, 201, 'it is new and has no key');
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => posted(n % 2 === 0 ? stays.path : left.path, `${n}`)),
  );
  for (const [n, { status, body }] of answers.entries()) {
    assert.is(status, n % 2 === 0 ? 201 : 503, JSON.stringify(body));
    if (status === 503) assert.match(body.message, 'the database of the shard second does not say');
  }
  await api.db.rows(`update shards set port = $2 where name = $1`, [
    SECOND,
    Number(new URL(shard.url).port),
  ]);
  await until(
    'the former shard to answer',
    async () => (await posted(left.path, 'b')).status === 201,
  );
});

moved.run();
