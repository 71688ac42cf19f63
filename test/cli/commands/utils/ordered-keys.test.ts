import { randomUUID } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makeDelivery, makeEndpoint, makeEvents, makeProject } from '../../../store/made.js';
import { migratedDatabase } from '../../../store/migrated.js';
import { connectionOf } from '../../../support/database.js';
import { runHere } from '../../run-here.js';

const keys = suite('cli/commands/utils/ordered-keys');

const db = await migratedDatabase();
keys.after(() => db.close());

const run = (...args: string[]) =>
  runHere('utils:ordered-keys', args, { database: connectionOf(db.url) });

/** Three deliveries with one key, parked at the first. */
async function parked() {
  const { id: projectId } = await makeProject(db);
  const { id: endpointId } = await makeEndpoint(db, projectId);
  const orderKey = randomUUID();
  const events = await makeEvents(
    db,
    projectId,
    [3, 2, 1].map((n) => ({ atMs: Date.now() - n * 1_000 })),
  );
  const ids: string[] = [];
  for (const [n, eventId] of events.entries()) {
    const status = n === 0 ? 'failure' : 'scheduled';
    ids.push(await makeDelivery(db, { projectId, eventId, endpointId, status }));
  }
  await db.rows(
    `update event_deliveries set order_key = $2, next_attempt_at = null, reason = 'HTTP 500' where project_id = $1`,
    [projectId, orderKey],
  );
  await db.rows(
    `insert into ordered_deliveries (project_id, endpoint_id, order_key, delivery_id, occurred_at, shown)
     select project_id, endpoint_id, order_key, id, occurred_at, 'order-7' from event_deliveries where project_id = $1 order by occurred_at`,
    [projectId],
  );
  await db.rows(
    `insert into ordered_keys (project_id, endpoint_id, order_key, delivery_id, occurred_at, parked_at)
     select project_id, endpoint_id, order_key, id, occurred_at, now() from event_deliveries where project_id = $1 and id = $2`,
    [projectId, ids[0]],
  );
  const states = async () => {
    const rows = await db.rows<{ status: string; due: boolean }>(
      `select status::text, next_attempt_at is not null as due from event_deliveries where project_id = $1 order by occurred_at`,
      [projectId],
    );
    return rows.map(({ status, due }) => (due ? `${status}, due` : status));
  };
  return { endpointId, orderKey, first: ids[0]!, states };
}

keys('the parked keys of an endpoint are listed with their depth and reason', async () => {
  const { endpointId, orderKey, first } = await parked();
  const { code, stdout } = await run(endpointId);
  assert.is(code, 0);
  const [head, row] = stdout
    .trim()
    .split('\n')
    .map((line) => line.split(/\s{2,}/));
  assert.equal(head, ['KEY', 'VALUE', 'PARKED', 'DELIVERIES', 'FIRST', 'REASON']);
  assert.equal([row![0], row![1], ...row!.slice(3)], [orderKey, 'order-7', '3', first, 'HTTP 500']);
});

keys('release makes the failed delivery due, and the others wait for it', async () => {
  const { endpointId, orderKey, states } = await parked();
  const { code, stdout, stderr } = await run(endpointId, '--release', orderKey);
  assert.equal([code, stderr], [0, '']);
  assert.match(stdout, `released the key ${orderKey} of the endpoint shop: 3 unfinished`);
  assert.equal(await states(), ['scheduled, due', 'scheduled', 'scheduled']);
  assert.match((await run(endpointId)).stderr, 'No key of the endpoint shop is parked.');
  const again = await run(endpointId, '--release', orderKey);
  assert.is(again.code, 1);
  assert.match(again.stderr, 'the key is not parked');
});

keys('skip leaves the failed delivery and makes the next one due', async () => {
  const { endpointId, orderKey, states } = await parked();
  const { code, stdout } = await run(endpointId, '--skip', orderKey);
  assert.is(code, 0);
  assert.match(stdout, '2 unfinished deliveries left');
  assert.equal(await states(), ['failure', 'scheduled, due', 'scheduled']);
});

keys('discard ends all deliveries of the key, and is in the audit log', async () => {
  const { endpointId, orderKey, states } = await parked();
  const { code, stdout } = await run(endpointId, '--discard', orderKey);
  assert.is(code, 0);
  assert.match(stdout, '0 unfinished deliveries left');
  assert.equal(await states(), ['failure', 'discarded', 'discarded']);
  for (const table of ['ordered_deliveries', 'ordered_keys'])
    assert.equal(await db.rows(`select from ${table} where order_key = $1`, [orderKey]), []);
  const [last] = await db.rows<{ action: string }>(
    `select action from audit_log order by id desc limit 1`,
  );
  assert.is(last?.action, 'endpoints.discardKey');
});

keys('only one decision is made at a time', async () => {
  const key = randomUUID();
  const { code, stderr } = await run(key, '--skip', key, '--discard', key);
  assert.is(code, 2);
  assert.match(stderr, 'only one of --release, --skip and --discard');
});

keys.run();
