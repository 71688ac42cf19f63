import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { createMeter } from '#core/metrics/meter';
import { startControlUpkeep, startMaintenance } from '#agent/liveness/maintenance';
import { acceptEvents } from '#store/events/events';
import { batch, newEvent, pendingEvent } from '../../store/batches.js';
import { makeProject } from '../../store/made.js';
import { migratedDatabase } from '../../store/migrated.js';
import { keptMetrics } from '../../support/kept-metrics.js';
import { tempFolder } from '../../support/start/keep.js';
import { until } from '../../support/until.js';
import { agentConfig, keptLog } from '../running.js';

const maintenance = suite('agent/liveness/maintenance');

const DAY_MS = 86_400_000;
const dayOf = (day: number) => new Date(Date.now() + day * DAY_MS).toISOString().slice(0, 10);

let db: Awaited<ReturnType<typeof migratedDatabase>>;
maintenance.before.each(async () => {
  db = await migratedDatabase();
  for (const day of [-9, -8, -7, -6]) await db.rows('select ensure_day($1::date)', [dayOf(day)]);
});
maintenance.after.each(() => db.close());

async function daysOfEvents(): Promise<string[]> {
  const rows = await db.rows<{ day: string }>(
    `select right(relname, 8) as day from pg_class where relname ~ '^events_[0-9]{8}$' order by 1`,
  );
  return rows.map(({ day }) => day);
}

maintenance(
  'an agent drops old days when it starts, tells each, and tells which it keeps because they are not finished',
  async () => {
    await acceptEvents(db.pool, batch([pendingEvent({ occurredAtMs: Date.now() - 8 * DAY_MS })]));
    await db.rows(`drop table events_${dayOf(7).replaceAll('-', '')}`);
    const { log, lines } = keptLog();
    const kept = keptMetrics();
    const stop = await startMaintenance(agentConfig(db.url, { retention: { days: 7 } }), {
      planes: db.planes,
      log,
      meter: kept.meter,
      isMailing: false,
    });
    assert.ok(
      (await daysOfEvents()).includes(dayOf(7).replaceAll('-', '')),
      'the coming days are there at once',
    );
    const about = (sentence: string) =>
      lines
        .filter((line) => line.sentence.includes(sentence))
        .map(({ fields }) => (fields as { day: string }).day);
    const lastRun = () => kept.value('gateway_retention_last_run_timestamp_seconds', {}) ?? 0;
    await until('it to have come to an end', () => lastRun() > 0);
    await stop();
    assert.ok(Math.abs(lastRun() - Date.now() / 1000) < 60);
    assert.equal(
      ['partitions_dropped', 'rows_deleted', 'failures'].map((name) =>
        kept.value(`gateway_retention_${name}_total`, {}),
      ),
      [1, 0, 0],
    );
    assert.equal([about('was dropped'), about('is kept')], [[dayOf(-9)], [dayOf(-8)]]);
    const days = await daysOfEvents();
    assert.equal(
      [-9, -8, -7, -6].map((day) => days.includes(dayOf(day).replaceAll('-', ''))),
      [false, true, true, true],
    );
  },
);

maintenance(
  'days that a project keeps for longer are told once, and what is deleted beside them is counted',
  async () => {
    const { id: projectId } = await makeProject(db, 'orders', { retention: { days: 30 } });
    const occurredAtMs = Date.now() - 9 * DAY_MS;
    await acceptEvents(
      db.pool,
      batch([newEvent({ occurredAtMs }), newEvent({ occurredAtMs, projectId })]),
    );
    await db.rows(`update events set accepted_at = occurred_at`);
    const { log, lines } = keptLog();
    const kept = keptMetrics();
    const stop = await startMaintenance(agentConfig(db.url, { retention: { days: 7 } }), {
      planes: db.planes,
      log,
      meter: kept.meter,
      isMailing: false,
    });
    await until(
      'it to have come to an end',
      () => kept.value('gateway_retention_last_run_timestamp_seconds', {}) !== undefined,
    );
    await stop();
    assert.is(kept.value('gateway_retention_rows_deleted_total', {}), 1);
    assert.equal(
      lines
        .map(({ fields, sentence }) => [fields, sentence])
        .filter(([, sentence]) => !/dropped/.test(sentence as string)),
      [
        [
          { rows: 1 },
          'Finished rows older than retention.days (7), or than their projects keep, were deleted.',
        ],
        [
          { days: 1 },
          'Days older than retention.days (7) are kept: some projects in them keep events for longer.',
        ],
      ],
    );
    assert.equal(await db.rows('select project_id from events'), [{ project_id: projectId }]);
  },
);

maintenance('a retention that fails is counted, and told with its reason', async () => {
  await db.rows('alter table quarantined_messages rename to away');
  const { log, lines } = keptLog();
  const kept = keptMetrics();
  const stop = await startMaintenance(agentConfig(db.url, { retention: { days: 7 } }), {
    planes: db.planes,
    log,
    meter: kept.meter,
    isMailing: false,
  });
  await until('it to have failed', () => kept.value('gateway_retention_failures_total', {}) === 1);
  await stop();
  await db.rows('alter table away rename to quarantined_messages');
  assert.ok(
    lines.some(({ sentence }) =>
      sentence.includes('Could not delete events older than retention.days'),
    ),
  );
});

maintenance(
  'with an archive, old days are written to it first; while it fails they are kept until archive.give_up_before lets go of them',
  async () => {
    const { id: projectId } = await makeProject(db);
    const event = newEvent({ projectId, occurredAtMs: Date.now() - 9 * DAY_MS });
    await acceptEvents(db.pool, batch([event]));
    const folder = tempFolder('archive');
    const file = path.join(folder, 'file');
    fs.writeFileSync(file, '');
    const run = async (archive: object) => {
      const { log, lines } = keptLog();
      const kept = keptMetrics();
      const settings = { retention: { days: 7 }, archive };
      const stop = await startMaintenance(agentConfig(db.url, settings), {
        planes: db.planes,
        log,
        meter: kept.meter,
        isMailing: false,
      });
      await until(
        'it to have come to an end',
        () => kept.value('gateway_retention_last_run_timestamp_seconds', {}) !== undefined,
      );
      await stop();
      const counted = ['events_total', 'failures_total', 'lost_days_total', 'waiting_days'].map(
        (name) => kept.value(`gateway_archive_${name}`, {}),
      );
      return { counted, said: lines.map(({ sentence }) => sentence).join('\n') };
    };
    const failing = await run({ url: file });
    assert.equal(failing.counted, [0, 1, 0, 2]);
    assert.match(failing.said, 'Expired days could not be archived and are kept');
    const written = await run({ url: folder });
    assert.equal(written.counted, [1, 0, 0, 0]);
    assert.match(written.said, 'was dropped');
    assert.ok(fs.existsSync(path.join(folder, `project=${projectId}/day=${dayOf(-9)}`)));

    await db.rows('select ensure_day($1::date)', [dayOf(-9)]);
    await acceptEvents(db.pool, batch([{ ...event, id: newId(event.occurredAtMs) }]));
    assert.equal((await run({ url: file })).counted, [0, 1, 0, 1]);
    await db.rows(`update archive_failure set since = since - interval '1 year'`);
    assert.throws(
      () => agentConfig(db.url, { archive: { url: file, max_delay_days: 1 } }),
      /max_delay_days.* is no longer valid/,
    );
    assert.equal((await run({ url: file, give_up_before: dayOf(-9) })).counted, [0, 1, 0, 1]);
    const lost = await run({ url: file, give_up_before: dayOf(-8) });
    assert.equal(lost.counted, [0, 1, 1, 0]);
    assert.match(lost.said, 'A day was deleted without a copy');
  },
);

maintenance('what is old in the control plane is deleted once for all shards', async () => {
  await db.rows(
    `insert into idempotent_requests (caller_id, key, request_hash, created_at) values ('old', 'a', '', now() - interval '9 days'), ('new', 'a', '', now())`,
  );
  const { log, lines } = keptLog();
  const config = agentConfig(db.url);
  const stop = startControlUpkeep(config, { pool: db.sessions, log });
  await until('the old one to be deleted', async () => {
    const rows = await db.rows<{ caller_id: string }>('select caller_id from idempotent_requests');
    return rows.length === 1 && rows[0]!.caller_id === 'new';
  });
  await stop();
  assert.equal(lines, []);
});

maintenance('with retention.enabled off nothing is dropped', async () => {
  await acceptEvents(db.pool, batch([newEvent({ occurredAtMs: Date.now() - 400 * DAY_MS })]));
  const before = await daysOfEvents();
  const { log, lines } = keptLog();
  const stop = await startMaintenance(
    agentConfig(db.url, { retention: { days: 1, enabled: false } }),
    {
      planes: db.planes,
      log,
      meter: createMeter(undefined),
      isMailing: false,
    },
  );
  await stop();
  assert.equal(await daysOfEvents(), before);
  assert.equal(lines, []);
});

maintenance.run();
