import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { decodeSignal } from '#store/events/events';
import { makeDelivery, makeEndpoint, makeEvents } from '../../store/made.js';
import { countRequests } from '#agent/flow-control/breaker-record';
import { encodeValue } from '#store/kv/versions';
import { makeProject, mistakes, startApi, type Api } from '../api.js';

const batch = suite('server/routes/batch');

let api: Api;
batch.before(async () => {
  api = await startApi();
});
batch.after(() => api.close());

const HOUR_MS = 3_600_000;
const now = Date.now();
const since = (hours: number) => `startDate=${new Date(now - hours * HOUR_MS).toISOString()}`;

async function statuses(
  table: 'events' | 'event_deliveries',
  projectId: string,
): Promise<Record<string, number>> {
  const rows = await api.db.rows<{ status: string; n: number }>(
    `select status::text, count(*)::int as n from ${table} where project_id = $1 group by status`,
    [projectId],
  );
  return Object.fromEntries(rows.map(({ status, n }) => [status, n]));
}

async function signalled(): Promise<string[]> {
  const queue = api.kv.queue('create-event');
  const signals =
    (await queue.depth()) === 0 ? [] : await queue.pull(1000, new AbortController().signal);
  await queue.done(signals.map(({ ticket }) => ticket));
  return signals.map(({ text }) => decodeSignal(text)!.id);
}

async function counted(projectId: string): Promise<Record<string, number>> {
  const rows = await api.db.rows<{ status: string; n: number }>(
    `select status, sum(n)::int as n from count_changes c, unnest(c.statuses, c.changes) u(status, n) where c.project_id = $1 group by status`,
    [projectId],
  );
  return Object.fromEntries(rows.map(({ status, n }) => [status, n]));
}

batch('a batch for the endpoint of another project does not touch its breaker', async () => {
  const [mine, theirs] = [await makeProject(api), await makeProject(api)];
  const { id: endpointId } = await makeEndpoint(api.db, theirs.id);
  const times = { since_ms: now, until_ms: now + 600_000, forget_ms: now + 900_000 };
  const counts = { requests: 9, failures: 9, trips: 1 };
  const record = { project_id: theirs.id, state: 'open', ...counts, ...times };
  const to = encodeValue('breaker', record);
  await api.kv.map('breakers').change([{ field: endpointId, from: undefined, to }]);
  const retry = ({ path, key }: typeof mine) =>
    api.call(
      'POST',
      `${path}/eventdeliveries/batchretry?${since(1)}&endpointId=${endpointId}`,
      undefined,
      { key },
    );
  const stored = async () => (await api.kv.map('breakers').some([endpointId])).entries;
  assert.is((await retry(mine)).status, 200);
  assert.is((await stored()).get(endpointId), to);
  assert.is((await retry(theirs)).status, 200);
  assert.is.not((await stored()).get(endpointId), to);
});

batch(
  'an event is replayed: it is pending again, signalled, and no longer counted as finished',
  async () => {
    const { path, id: projectId } = await makeProject(api);
    const [id] = (await makeEvents(api.db, projectId, [{ atMs: now, status: 'failed' }])) as [
      string,
    ];
    await signalled();
    const { status, body } = await api.call('PUT', `${path}/events/${id}/replay`);
    assert.equal([status, body.data], [200, { uid: id }]);
    assert.equal(await statuses('events', projectId), { pending: 1 });
    assert.equal(await signalled(), [id]);
    assert.equal(await counted(projectId), { failed: -1 });
    const again = await api.call('PUT', `${path}/events/${id}/replay`);
    assert.is(again.status, 409);
    assert.match(again.body.message, 'the event is pending');
    assert.is((await api.call('PUT', `${path}/events/${newId()}/replay`)).status, 404);
  },
);

batch(
  'events of a filter are replayed after a dry run has counted them, and only those of the project',
  async () => {
    const [{ path, id: projectId }, other] = [await makeProject(api), await makeProject(api)];
    const events = [0, 1, 2, 5].map((hours) => ({
      atMs: now - hours * HOUR_MS,
      status: hours === 1 ? 'processed' : 'failed',
    }));
    const ids = await makeEvents(api.db, projectId, [
      ...events,
      { atMs: now - 1, eventType: 'order.void', status: 'failed' },
    ]);
    await makeEvents(api.db, other.id, events);
    const select = `${path}/events/batchreplay?${since(3)}&status=failed&event_type=order.paid`;
    const dry = await api.call('POST', `${select}&dry_run=true`);
    assert.equal([dry.status, dry.body.data], [200, { count: 2, dry_run: true, next: null }]);
    assert.equal(await statuses('events', projectId), { failed: 4, processed: 1 });
    await signalled();
    assert.equal((await api.call('POST', select)).body.data, {
      count: 2,
      dry_run: false,
      next: null,
    });
    assert.equal((await signalled()).sort(), [ids[0], ids[2]].sort());
    assert.equal(await statuses('events', projectId), { failed: 2, pending: 2, processed: 1 });
    assert.equal(await statuses('events', other.id), { failed: 3, processed: 1 });
    const rest = await api.call('POST', `${path}/events/batchreplay?${since(9)}&after=${ids[3]}`);
    assert.is(rest.body.data.count, 2, 'what follows the fifth hour and is finished');
  },
);

batch('a replay is forced when it is asked for', async () => {
  const { path, id: projectId } = await makeProject(api);
  const [id] = (await makeEvents(api.db, projectId, [{ atMs: now, status: 'processed' }])) as [
    string,
  ];
  const replayed = async (route: string) => {
    await api.db.rows(
      `update events set status = 'processed', outcome = 'routed' where project_id = $1`,
      [projectId],
    );
    assert.is(
      (await api.call(route.includes('batch') ? 'POST' : 'PUT', `${path}/events/${route}`)).status,
      200,
    );
    return (
      await api.db.rows<{ replayed: boolean }>(
        'select replayed from events where project_id = $1',
        [projectId],
      )
    )[0]!.replayed;
  };
  for (const route of [`${id}/replay`, `batchreplay?${since(1)}`])
    assert.equal(
      [
        await replayed(route),
        await replayed(`${route}${route.includes('?') ? '&' : '?'}force=true`),
      ],
      [true, false],
      route,
    );
});

batch('a batch says from when', async () => {
  const { path } = await makeProject(api);
  for (const route of ['events/batchreplay', 'eventdeliveries/batchretry']) {
    const { status, ...answer } = await api.call('POST', `${path}/${route}`);
    assert.is(status, 422);
    assert.match(mistakes({ status, ...answer }).join(), 'startDate');
  }
});

batch('deliveries of a filter are sent again after a dry run has counted them', async () => {
  const { path, id: projectId } = await makeProject(api);
  const [active, paused] = [
    await makeEndpoint(api.db, projectId),
    await makeEndpoint(api.db, projectId),
  ];
  await api.call('PUT', `${path}/endpoints/${paused.id}/pause`);
  const [eventId, old] = (await makeEvents(api.db, projectId, [
    { atMs: now },
    { atMs: now - 5 * HOUR_MS },
  ])) as [string, string];
  const made = { projectId, eventId, status: 'failure', attempts: 3 };
  await makeDelivery(api.db, { ...made, endpointId: active.id });
  await makeDelivery(api.db, { ...made, endpointId: paused.id });
  await makeDelivery(api.db, { ...made, endpointId: active.id, eventId: old });
  await makeDelivery(api.db, { ...made, endpointId: newId(), status: 'failure' });
  const select = `${path}/eventdeliveries/batchretry?${since(1)}`;
  const expected = { due: 1, held: 1, left: 1, behind_breakers: [], progress: 1, next: null };
  assert.equal((await api.call('POST', `${select}&dry_run=true`)).body.data, {
    ...expected,
    dry_run: true,
  });
  assert.equal(await statuses('event_deliveries', projectId), { failure: 4 });
  assert.equal((await api.call('POST', `${select}&endpointId=${newId()}`)).body.data, {
    ...expected,
    due: 0,
    held: 0,
    left: 0,
    dry_run: false,
  });
  assert.equal((await api.call('POST', select)).body.data, { ...expected, dry_run: false });
  assert.equal(await statuses('event_deliveries', projectId), { failure: 2, scheduled: 2 });
  const ended = `${path}/eventdeliveries/batchretry?${since(9)}&endDate=${new Date(now - 4 * HOUR_MS).toISOString()}`;
  assert.is((await api.call('POST', ended)).body.data.due, 1);
});

batch(
  'deliveries to an endpoint behind an open breaker are queued, and the answer says so',
  async () => {
    const { path, id: projectId } = await makeProject(api);
    const [up, down] = [
      await makeEndpoint(api.db, projectId, { name: 'up' }),
      await makeEndpoint(api.db, projectId, { name: 'down' }),
    ];
    const events = await makeEvents(api.db, projectId, [{ atMs: now }, { atMs: now - 1 }]);
    for (const eventId of events)
      for (const { id: endpointId } of [up, down])
        await makeDelivery(api.db, { projectId, eventId, endpointId, status: 'failure' });
    const policy = {
      threshold: 0.5,
      minimumRequests: 1,
      windowMs: 60_000,
      openMs: 60_000,
      openMaxMs: 60_000,
    };
    const breaker = countRequests(undefined, { projectId, requests: 9, failures: 9 }, policy, now);
    await api.kv
      .map('breakers')
      .change([{ field: down.id, from: undefined, to: encodeValue('breaker', breaker) }]);
    const { body } = await api.call('POST', `${path}/eventdeliveries/batchretry?${since(1)}`);
    const clock = new Date(breaker.until_ms).toISOString().slice(11, 16);
    assert.is(
      body.message,
      `4 event deliveries are queued; 2 of them wait for the circuit breaker of down, open until ${clock} UTC`,
    );
    assert.equal(body.data.behind_breakers, [
      {
        endpoint_id: down.id,
        endpoint_name: 'down',
        count: 2,
        until: new Date(breaker.until_ms).toISOString(),
      },
    ]);
  },
);
batch('deliveries that wait are made due, unless they are due or held', async () => {
  const { path, id: projectId } = await makeProject(api);
  const { id: endpointId } = await makeEndpoint(api.db, projectId);
  const ids = [];
  for (const [n, eventId] of (
    await makeEvents(
      api.db,
      projectId,
      [1, 2, 3].map((ms) => ({ atMs: now - ms })),
    )
  ).entries())
    ids.push(
      await makeDelivery(api.db, { projectId, eventId, endpointId, status: 'retry', attempts: n }),
    );
  await api.db.rows(
    `update event_deliveries set next_attempt_at = now() + interval '1 hour' where id = any ($1)`,
    [ids.slice(1)],
  );
  const select = `${path}/eventdeliveries/batchretry?${since(1)}&status=retry&endpointId=${endpointId}`;
  const { due, left } = (await api.call('POST', select)).body.data;
  assert.equal([due, left], [2, 1]);
  const rows = await api.db.rows(
    `select status::text, attempts, next_attempt_at <= now() as due from event_deliveries where project_id = $1 order by attempts`,
    [projectId],
  );
  assert.equal(
    rows,
    [0, 1, 2].map((attempts) => ({ status: 'retry', attempts, due: true })),
  );
});

batch('deliveries are sent again by their ids, each with its result', async () => {
  const { path, id: projectId } = await makeProject(api);
  const other = await makeProject(api);
  const { id: endpointId } = await makeEndpoint(api.db, projectId);
  const [eventId, second] = (await makeEvents(api.db, projectId, [
    { atMs: now },
    { atMs: now - 1 },
  ])) as [string, string];
  const done = await makeDelivery(api.db, { projectId, eventId, endpointId, status: 'success' });
  const retried = await makeDelivery(api.db, {
    projectId,
    eventId: second,
    endpointId,
    status: 'retry',
  });
  const [theirs] = (await makeEvents(api.db, other.id, [{ atMs: now - 2 }])) as [string];
  const foreign = await makeDelivery(api.db, {
    projectId: other.id,
    eventId: theirs,
    endpointId,
    status: 'failure',
  });
  const { body } = await api.call('POST', `${path}/eventdeliveries/forceresend`, {
    ids: [done, retried, foreign],
  });
  assert.is(body.data.resent, 2);
  assert.equal(
    body.data.content.map(({ uid, error }: { uid: string; error: string | null }) => [uid, error]),
    [
      [done, null],
      [retried, null],
      [foreign, 'there is no event delivery with this id in this project'],
    ],
  );
  assert.equal(await statuses('event_deliveries', other.id), { failure: 1 });
});

batch('a filter is tested against a sample, and what does not match is told', async () => {
  const { path } = await makeProject(api);
  const test = async (filter: object, sample: object, more: object = {}) =>
    (await api.call('POST', `${path}/subscriptions/test_filter`, { filter, sample, ...more })).body
      .data;
  const filter = { headers: { 'X-Region': 'eu' }, body: { 'order.total': { $gte: 100 } } };
  const sample = { headers: { 'x-Region': 'eu' }, body: { order: { total: 120 } } };
  assert.equal(await test(filter, sample), {
    matches: true,
    headers: true,
    body: true,
    mismatches: [],
  });
  assert.equal(
    await test(filter, { headers: { 'x-region': 'us' }, body: { order: { total: 20 } } }),
    {
      matches: false,
      headers: false,
      body: false,
      mismatches: [
        {
          ...{ part: 'headers', path: 'x-region', operator: '$eq', wanted: 'eu', found: 'us' },
          sentence: 'the filter requires the header x-region to be "eu", but it is "us"',
        },
        {
          ...{ part: 'body', path: 'order.total', operator: '$gte', wanted: 100, found: 20 },
          sentence: 'the filter requires order.total to be at least 100, but it is 20',
        },
      ],
    },
  );
  assert.equal(await test(filter, { headers: { 'x-region': 'eu' } }), {
    matches: false,
    headers: true,
    body: false,
    mismatches: [
      {
        ...{ part: 'body', path: 'order.total', operator: '$gte', wanted: 100 },
        sentence: 'the filter requires order.total to be at least 100, but it is missing',
      },
    ],
  });
  const types = { event_types: ['order.*', 'refund'] };
  const typed = async (event_type: string) => (await test({}, { event_type }, types)).mismatches;
  assert.equal([await typed('order.paid'), await typed('refund')], [[], []]);
  assert.equal(await typed('orders'), [
    {
      ...{ part: 'event_types', wanted: types.event_types, found: 'orders' },
      sentence: 'the event type orders does not match order.*, refund',
    },
  ]);
  assert.equal(
    await test({}, {}, types),
    { matches: true, headers: true, body: true, mismatches: [] },
    'a sample without a type',
  );
  const wrong = await api.call('POST', `${path}/subscriptions/test_filter`, {
    event_types: ['*.paid'],
    filter: { body: { n: { $foo: 1 } } },
    sample,
  });
  assert.is(wrong.status, 422);
  assert.match(
    mistakes(wrong).join(),
    /event_types\.0 may have \* alone.*filter\.body \$foo is not an operator/,
  );
});

batch.run();
