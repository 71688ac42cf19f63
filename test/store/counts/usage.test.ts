import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { silentLog } from '#core/logging/log';
import {
  addUsage,
  closeUnposted,
  hasUnposted,
  lockBilling,
  listUsage,
  markPosted,
  type UsageDay,
} from '#store/counts/usage';
import { startUsageCounter } from '#ingest/commit/usage-counter';
import { proxy } from '../../support/proxy.js';
import { until } from '../../support/until.js';
import { makeProject } from '../made.js';
import { migratedDatabase, openUrl } from '../migrated.js';

const usage = suite('store/counts/usage');

let db: Awaited<ReturnType<typeof migratedDatabase>>;
usage.before(async () => {
  db = await migratedDatabase();
});
usage.before.each(async () => void (await db.rows('delete from usage_days')));
usage.after(() => db.close());

const day = (ago: number): string =>
  new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
const totals = async (days = 10) =>
  (await listUsage(db.pool, { days })).map((it) => [it.day, it.events, it.deliveries, it.bytes]);

usage('usage of the projects of an organisation adds up in one record a day', async () => {
  const { id: projectId, organisation_id } = await makeProject(db);
  const other = await makeProject(db);
  await db.rows('update projects set organisation_id = $1 where id = $2', [
    organisation_id,
    other.id,
  ]);
  const one = { events: 1, deliveries: 2, bytes: 3 };
  await addUsage(db.pool, [
    { projectId, day: day(0), ...one },
    { projectId: other.id, day: day(0), ...one },
    { projectId, day: day(1), ...one },
    { projectId: newId(), day: day(0), ...one },
  ]);
  await addUsage(db.pool, [{ projectId, day: day(0), ...one }]);
  assert.equal(await totals(), [
    [day(0), 3, 6, 9],
    [day(1), 1, 2, 3],
  ]);
  assert.equal(await totals(1), [[day(0), 3, 6, 9]]);
  assert.equal(await listUsage(db.pool, { days: 10, organisationId: newId() }), []);
  const [record] = await listUsage(db.pool, { days: 10, organisationId: organisation_id });
  assert.equal([record?.organisation, record?.posted_at], ['Acme', null]);
});

usage('records are listed in parts, each after the last record of the one before', async () => {
  const made = await Promise.all([makeProject(db), makeProject(db)]);
  const one = { events: 1, deliveries: 1, bytes: 1 };
  await addUsage(
    db.pool,
    made.flatMap(({ id: projectId }) =>
      [0, 1].map((ago) => ({ projectId, day: day(ago), ...one })),
    ),
  );
  const keyOf = (it: UsageDay) => `${it.day}~${it.organisation_id}`;
  const whole = (await listUsage(db.pool, { days: 10 })).map(keyOf);
  assert.is(whole.length, 4);
  const parts: string[] = [];
  for (let after: string | undefined; parts.length < 4; after = parts.at(-1))
    parts.push(
      ...(await listUsage(db.pool, { days: 10, limit: 3, ...(after && { after }) })).map(keyOf),
    );
  assert.equal(parts, whole);
});

usage('numbers beyond 32 bits are kept', async () => {
  const { id: projectId } = await makeProject(db);
  const bytes = 9_000_000_000_000;
  await addUsage(db.pool, [{ projectId, day: day(0), events: 1, deliveries: 1, bytes }]);
  assert.equal(await totals(), [[day(0), 1, 1, bytes]]);
});

usage(
  'a day is closed an hour after its end, and what comes after that changes nothing',
  async () => {
    const { id: projectId } = await makeProject(db);
    const add = (ago: number) =>
      addUsage(db.pool, [{ projectId, day: day(ago), events: 1, deliveries: 0, bytes: 0 }]);
    await add(0);
    assert.is(await hasUnposted(db.pool), false);
    assert.equal(await closeUnposted(db.pool, 10), []);
    await add(3);
    await add(2);
    assert.is(await hasUnposted(db.pool), true);
    const [first] = await closeUnposted(db.pool, 1);
    assert.equal([first?.day, first?.events], [day(3), 1]);
    await add(3);
    await add(2);
    const rest = await closeUnposted(db.pool, 10, first);
    assert.equal(
      rest.map((it) => [it.day, it.events]),
      [[day(2), 2]],
    );
    await markPosted(db.pool, first!);
    assert.equal(
      (await closeUnposted(db.pool, 10)).map((it) => it.day),
      [day(2)],
    );
    const [posted] = (await listUsage(db.pool, { days: 10 })).slice(-1);
    assert.equal([posted?.events, posted?.posted_at instanceof Date], [1, true]);
  },
);

usage('one connection at a time may post, until it ends', async () => {
  const first = await db.connect();
  const second = await db.connect();
  assert.is(await lockBilling(first), true);
  assert.is(await lockBilling(second), false);
  await first.end();
  await until('the lock to be free', () => lockBilling(second));
  await second.end();
});

usage('what is counted in memory is added by a flush, once, and by closing', async () => {
  const { id: projectId } = await makeProject(db);
  const counter = startUsageCounter({ pool: db.pool, log: silentLog, flushMs: 3_600_000 });
  counter.event(projectId, '{"ä":1}');
  counter.event(projectId, '{}');
  counter.delivery(projectId);
  assert.equal(await totals(), []);
  await Promise.all([counter.flush(), counter.flush()]);
  await counter.flush();
  assert.equal(await totals(), [[day(0), 2, 1, 10]]);
  counter.event(projectId, '{}');
  await counter.close();
  assert.equal(await totals(), [[day(0), 3, 1, 12]]);
});

usage(
  'while Postgres is away counts are kept and added when it is back; an answer that is lost counts nothing twice',
  async () => {
    const { id: projectId } = await makeProject(db);
    const between = await proxy({ port: Number(new URL(db.url).port) });
    const url = new URL(db.url);
    url.port = String(between.port);
    const own = openUrl(url.href);
    const counter = startUsageCounter({ pool: own.pool, log: silentLog, flushMs: 3_600_000 });
    try {
      between.cut();
      counter.event(projectId, '{}');
      await counter.flush();
      counter.event(projectId, '{}');
      between.restore();
      await until('the counts', async () => {
        await counter.flush();
        return (await totals()).length > 0;
      });
      assert.equal(await totals(), [[day(0), 2, 0, 4]]);
      // Postgres has added it and the response is lost: adding it again would count it twice.
      counter.event(projectId, '{}');
      const lost = between.loseAnswer('add-usage');
      await counter.flush();
      await lost;
      await counter.flush();
      assert.equal(await totals(), [[day(0), 3, 0, 6]]);
    } finally {
      await counter.close();
      await own.close();
      await between.close();
    }
  },
);

usage('what Postgres refuses is kept, told of once, and added when it is taken again', async () => {
  const { id: projectId } = await makeProject(db);
  const lines: string[] = [];
  const log = { ...silentLog, warn: (_: object, sentence: string) => void lines.push(sentence) };
  const counter = startUsageCounter({ pool: db.pool, log, flushMs: 3_600_000 });
  await db.rows('alter table usage_days rename to elsewhere');
  try {
    counter.event(projectId, '{}');
    await counter.flush();
    counter.event(projectId, '{}');
    await counter.flush();
  } finally {
    await db.rows('alter table elsewhere rename to usage_days');
  }
  assert.equal(lines, ['Could not write usage; it stays in memory until the next flush.']);
  await counter.close();
  assert.equal(await totals(), [[day(0), 2, 0, 4]]);
});

usage.run();
