import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { disableFailingEndpoints } from '#store/deliveries/endpoint-outages';
import { makeEndpoint, makeProject } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const outages = suite('store/deliveries/endpoint-outages');

let db: Awaited<ReturnType<typeof migratedDatabase>>;
outages.before(async () => {
  db = await migratedDatabase();
  await db.rows(`insert into shards (name, schema_name) values ('other', 'other')`);
});
outages.before.each(
  async () =>
    void (await db.rows(
      `with a as (delete from activity), n as (delete from notifications) delete from endpoint_outages`,
    )),
);
outages.after(() => db.close());

/** Creates an endpoint that was last changed a month ago. */
async function made(days: number | undefined) {
  const config = days === undefined ? {} : { disable_after_days: days };
  const { id: projectId } = await makeProject(db, 'orders', config);
  const { id } = await makeEndpoint(db, projectId);
  await db.rows(`update endpoints set updated_at = now() - interval '30 days' where id = $1`, [id]);
  const attempts = (status: 'success' | 'failure', hoursAgo: number, n = 10) =>
    db.rows(
      `insert into activity values ($1, $2, date_bin('10 minutes', now() - $3::int * interval '1 hour', 'epoch'), 'attempt', $4, $5)`,
      [projectId, id, hoursAgo, status, n],
    );
  /** Moves the outage and its warning into the past. */
  const pass = (hours: number) =>
    db.rows(
      `update endpoint_outages set since = since - $2::int * interval '1 hour', warned_at = warned_at - $2::int * interval '1 hour' where endpoint_id = $1`,
      [id, hours],
    );
  const run = async () => {
    const disabled = await disableFailingEndpoints(db.planes, true);
    const told = await db.rows<{ kind: string }>(
      `select kind from notifications where subject = $1 order by created_at`,
      [id],
    );
    return [disabled.length, told.map(({ kind }) => kind)];
  };
  return { id, projectId, attempts, pass, run };
}

outages(
  'an endpoint that only fails is warned of a day before, disabled, and told of',
  async () => {
    const { id, attempts, pass, run } = await made(3);
    await attempts('failure', 1);
    assert.equal(await run(), [0, []]);
    await pass(46);
    assert.equal(await run(), [0, []], 'with more than a day left');
    await pass(2);
    assert.equal(await run(), [0, ['endpoint_disabling']]);
    assert.equal(await run(), [0, ['endpoint_disabling']], 'warned once');
    await pass(24);
    assert.equal(await run(), [1, ['endpoint_disabling', 'endpoint_disabled']]);
    const [row] = await db.rows<{ status: string; status_reason: string }>(
      'select status, status_reason from endpoints where id = $1',
      [id],
    );
    assert.equal(
      [row!.status, row!.status_reason],
      ['inactive', 'All its delivery attempts failed for 3 days.'],
    );
    assert.equal(await run(), [0, ['endpoint_disabling', 'endpoint_disabled']]);
  },
);

outages(
  'a success, a change, few or old attempts, and projects that do not ask for it end it',
  async () => {
    const outage = () => db.rows('select from endpoint_outages');
    const good = await made(3);
    await good.attempts('failure', 1);
    await good.run();
    await good.attempts('success', 0);
    await good.run();
    assert.equal(await outage(), []);

    const changed = await made(3);
    await changed.attempts('failure', 1);
    await changed.run();
    await db.rows('update endpoints set updated_at = now() where id = $1', [changed.id]);
    await changed.run();
    assert.equal(await outage(), []);

    const few = await made(3);
    await few.attempts('failure', 1, 9);
    await few.run();
    await few.pass(100);
    assert.equal(await few.run(), [0, []]);

    const quiet = await made(3);
    await quiet.attempts('failure', 50);
    await quiet.run();
    await quiet.pass(100);
    assert.equal(await quiet.run(), [0, []]);

    const unasked = await made(undefined);
    for (let day = 0; day < 30; day++) await unasked.attempts('failure', 1 + day * 24);
    assert.equal(await unasked.run(), [0, []]);
    await unasked.pass(720);
    assert.equal(await unasked.run(), [0, []]);
    assert.equal(await db.rows('select status from endpoints where id = $1', [unasked.id]), [
      { status: 'active' },
    ]);
  },
);

outages('a shard that a project has left neither warns nor disables', async () => {
  const { projectId, attempts, pass, run } = await made(3);
  await attempts('failure', 1);
  await run();
  await pass(47);
  await db.rows(`update projects set shard = 'other' where id = $1`, [projectId]);
  assert.equal(await run(), [0, []]);
  await db.rows('delete from endpoint_outages');
  await run();
  assert.equal(await db.rows('select from endpoint_outages'), [], 'it begins none either');
});

outages('a project that asks for it later is warned first', async () => {
  const { attempts, pass, run } = await made(3);
  await attempts('failure', 1);
  await run();
  await pass(200);
  assert.equal(await run(), [0, ['endpoint_disabling']]);
  await pass(24);
  assert.equal(await run(), [1, ['endpoint_disabling', 'endpoint_disabled']]);
});

outages.run();
