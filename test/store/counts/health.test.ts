import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { readEndpointTroubles, readProjectStates } from '#store/counts/health';
import { bothPlanes } from '#store/postgres/planes';
import { onPostgres } from '../batches.js';
import { makeEndpoint, makeProject } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const health = suite('store/counts/health');

const db = await migratedDatabase();
health.after(() => db.close());

/** Runs `work`, and returns the plans of its statements, which Postgres makes for the generic case. */
async function plansOf(work: (pool: typeof db.pool) => Promise<unknown>): Promise<string> {
  const plans: string[] = [];
  const pool = {
    async query({ name, text, values }: { name: string; text: string; values: unknown[] }) {
      const client = await db.pool.connect();
      try {
        const { rows } = await client.query<Record<string, string>>(`explain ${text}`, values);
        plans.push(name, ...rows.map((row) => row['QUERY PLAN']!));
      } finally {
        client.release();
      }
      return db.pool.query(text, values);
    },
  };
  await work(pool as unknown as typeof db.pool);
  return plans.join('\n');
}

onPostgres(health)(
  'the states of a project are read by indexes, none of finished deliveries',
  async () => {
    const { id } = await makeProject(db);
    const endpoint = await makeEndpoint(db, id);
    await db.pool.query(
      `insert into activity select $1, gen_random_uuid(), now() - n * interval '10 minutes', 'attempt', case n % 50 when 0 then 'failure' else 'success' end, 1 from generate_series(1, 2000) n`,
      [id],
    );
    await db.pool.query('analyze activity');
    const plans = await plansOf(async (pool) => {
      await readProjectStates(bothPlanes({ pool }), id);
      await readEndpointTroubles(bothPlanes({ pool }), id, [endpoint.id]);
    });
    assert.not.match(plans, /Seq Scan on (event|delivery|activity|quarantined)/);
    assert.match(plans, /status_id_idx|event_deliveries_\w+/);
    assert.match(plans, /activity_failures/);
    assert.match(plans, /endpoints_not_active/);
  },
);

health('breakers of other projects and of endpoints that are not active are left out', async () => {
  const { id } = await makeProject(db);
  const [open, paused] = [
    await makeEndpoint(db, id, { name: 'open' }),
    await makeEndpoint(db, id, { name: 'paused' }),
  ];
  await db.pool.query(`update endpoints set status = 'paused' where id = $1`, [paused.id]);
  const { content, count } = await readEndpointTroubles(db.planes, id, [
    open.id,
    paused.id,
    newId(),
  ]);
  assert.equal(
    content.map(({ name, kind }) => `${name} ${kind}`),
    ['open open'],
  );
  assert.equal(count, { open: 1, failing: 0, partly: 0 });
});

health.run();
