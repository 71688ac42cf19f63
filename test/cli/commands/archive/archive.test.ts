import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId, timeOfId } from '#core/events/ids';
import type { ArchivedDelivery, ArchivedEvent } from '#store/retention/archive';
import { openObjectStore } from '#archive/open-store';
import { writeDay } from '#archive/write-day';
import { migratedDatabase } from '../../../store/migrated.js';
import { makeProject } from '../../../store/made.js';
import { bucket } from '../../../support/bucket.js';
import { connectionOf } from '../../../support/database.js';
import { runGateway } from '../../../support/gateway.js';
import { addShard } from '../../../support/shard.js';
import { runHere } from '../../run-here.js';

const archive = suite('cli/commands/archive/archive');

const [db, s3] = await Promise.all([migratedDatabase(), bucket()]);
const config = {
  database: connectionOf(db.url),
  kv: { type: 'in-memory' },
  archive: s3.settings,
  instance_ingest_rate: 0,
};
archive.after(async () => {
  await s3.close();
  await db.close();
});

const NOON = Date.parse('2025-06-01T12:00:00Z');
const SOURCE = newId();
const [SHOP, BANK] = [newId(), newId()];

function delivery(endpointId: string, status: ArchivedDelivery['status']): ArchivedDelivery {
  const none = { subscription_id: null, reason: null, http_status: null, error: null };
  return { id: newId(), endpoint_id: endpointId, status, attempts: 1, updated_at: '', ...none };
}

function archivedEvent(
  hour: number,
  deliveries: ArchivedDelivery[],
  fields: Partial<ArchivedEvent> = {},
): ArchivedEvent {
  const id = newId(NOON + hour * 3_600_000);
  return {
    id,
    occurred_at: new Date(timeOfId(id)),
    accepted_at: new Date(timeOfId(id)),
    source_id: null,
    coordinates: 'api',
    event_type: 'order.paid',
    message_type: 'single',
    endpoint_id: null,
    owner_id: null,
    idempotency_key: 'its own',
    status: 'processed',
    outcome: 'routed',
    headers: '{"x-a":"b"}',
    message: null,
    notes: null,
    data: ` {"hour": ${hour}.0}`,
    deliveries: JSON.stringify(deliveries),
    ...fields,
  };
}

/** A project with archived events: two on 1 June, one on 2 June. */
async function archived({ shard }: { shard?: string } = {}) {
  const { id: projectId } = await makeProject(db);
  const events = [
    archivedEvent(0, [delivery(SHOP, 'success'), delivery(BANK, 'failure')]),
    archivedEvent(1, [delivery(SHOP, 'failure')], {
      event_type: 'refund.made',
      source_id: SOURCE,
      message_type: 'fanout',
      owner_id: 'ada',
    }),
    archivedEvent(24, [], { message_type: 'broadcast' }),
  ];
  const store = await openObjectStore(s3.settings);
  for (const [day, ofDay, on] of [
    ['2025-06-01', events.slice(0, 2), undefined],
    ['2025-06-02', events.slice(2), shard],
  ] as const)
    await writeDay(store, {
      shard: on,
      projectId,
      day,
      writtenBefore: new Date(),
      async *pages() {
        yield await Promise.resolve(ofDay);
      },
    });
  store.close();
  const stored = () =>
    db.rows<Record<string, string>>(
      `select event_type, message_type, endpoint_id, owner_id, source_id, coordinates, idempotency_key, status, headers, data
         from events where project_id = $1 order by coordinates, endpoint_id`,
      [projectId],
    );
  const replay = (...args: readonly string[]) =>
    runHere('archive:replay', ['--project-id', projectId, ...args], config);
  return { projectId, events, stored, replay };
}

const JUNE = ['--from', '2025-06-01', '--to', '2025-06-02'];

archive('lists the days of a project, in a range, as a table and as JSON', async () => {
  const { projectId } = await archived();
  const { code, stdout } = await runGateway(['archive', 'list', '--project-id', projectId], {
    config,
  });
  assert.is(code, 0);
  assert.match(
    stdout,
    new RegExp(
      `^PROJECT +DAY +EVENTS +BYTES +ARCHIVED\\n${projectId} +2025-06-01 +2 +\\d+ +\\S+Z\\n${projectId} +2025-06-02 +1 `,
    ),
  );
  const list = async (...args: readonly string[]) =>
    (
      JSON.parse(
        (await runHere('archive:list', ['--project-id', projectId, '--json', ...args], config))
          .stdout,
      ) as { day: string }[]
    ).map(({ day }) => day);
  assert.equal(await list('--from', '2025-06-02'), ['2025-06-02']);
  assert.equal(await list('--to', '2025-06-01'), ['2025-06-01']);
  assert.equal(await list('--to', '2025-05-31'), []);
});

archive('sends events again as new ones of now, and a second run sends nothing', async () => {
  const { events, replay, stored } = await archived();
  const dry = await replay(...JUNE, '--dry-run');
  assert.equal([dry.code, dry.stdout], [0, '3 events would be sent\n']);
  assert.equal(await stored(), []);
  const first = await replay(...JUNE);
  assert.equal([first.code, first.stdout, first.stderr], [0, 'sent 3 events\n', '']);
  const found = await stored();
  assert.equal(
    found,
    events.map(({ id, event_type, message_type, endpoint_id, owner_id, source_id, ...it }) => ({
      event_type,
      message_type,
      endpoint_id,
      owner_id,
      source_id,
      coordinates: `archive/${id}`,
      idempotency_key: `archive/${id}`,
      status: 'pending',
      headers: it.headers,
      data: it.data,
    })),
  );
  const ages = await db.rows<{ s: number }>(
    `select extract(epoch from now() - occurred_at)::int as s from events where coordinates = $1`,
    [found[0]!['coordinates']],
  );
  assert.ok(ages[0]!.s < 60);
  const second = await replay(...JUNE);
  assert.equal(
    [second.code, second.stdout, second.stderr],
    [0, 'sent 0 events\n', '3 events had been sent in the last 7 days\n'],
  );
  assert.is((await stored()).length, 3);
});

archive('days of all shards are listed and sent again', async () => {
  const { projectId, replay } = await archived({ shard: 'big' });
  const list = (...args: readonly string[]) =>
    runHere('archive:list', ['--project-id', projectId, ...args], config);
  const { stdout } = await list();
  assert.match(stdout, /^PROJECT .* SHARD\n\S+ +2025-06-01 .* default\n\S+ +2025-06-02 .* big\n$/);
  const days = JSON.parse((await list('--json')).stdout) as { day: string; shard?: string }[];
  assert.equal(
    days.map(({ day, shard }) => [day, shard]),
    [
      ['2025-06-01', undefined],
      ['2025-06-02', 'big'],
    ],
  );
  const everything = JSON.parse((await runHere('archive:list', ['--json'], config)).stdout) as {
    project_id: string;
  }[];
  assert.is(everything.filter(({ project_id: id }) => id === projectId).length, 2);
  assert.is((await replay(...JUNE)).stdout, 'sent 3 events\n');
});

archive('what was sent before a move of the project is not sent again after it', async () => {
  const { projectId, replay } = await archived();
  assert.is((await replay(...JUNE)).stdout, 'sent 3 events\n');
  const shard = await addShard(db);
  try {
    const { code, stderr } = await runHere('shards:move', [projectId, 'second'], config);
    assert.is(code, 0, stderr);
    const again = await replay(...JUNE);
    assert.equal(
      [again.stdout, again.stderr],
      ['sent 0 events\n', '3 events had been sent in the last 7 days\n'],
    );
  } finally {
    await runHere('shards:move', [projectId, 'default'], config);
    await shard.close();
  }
});

archive('a run that was stopped is continued by the next one', async () => {
  const { replay, stored } = await archived();
  const first = JSON.parse((await replay(...JUNE, '--limit', '2', '--json')).stdout) as object;
  const { project_id: _, ...sums } = first as Record<string, unknown>;
  assert.equal(sums, { dry_run: false, stopped: false, selected: 2, created: 2, duplicates: 0 });
  assert.is((await replay(...JUNE)).stdout, 'sent 1 event\n');
  assert.is((await stored()).length, 3);
});

archive('selects by type, source, time and id', async () => {
  const { events, replay } = await archived();
  const ids = async (...args: readonly string[]) =>
    (await replay(...args, '--dry-run')).stdout.replace(/ would be sent\n/, '');
  assert.is(await ids(...JUNE, '--event-type', 'order.*'), '2 events');
  assert.is(await ids(...JUNE, '--source-id', SOURCE), '1 event');
  assert.is(await ids('--from', '2025-06-01', '--to', '2025-06-01'), '2 events');
  assert.is(
    await ids('--from', '2025-06-01T12:30:00Z', '--to', '2025-06-01T23:00:00+02:00'),
    '1 event',
  );
  assert.is(await ids('--id', events[2]!.id), '1 event');
  assert.is(await ids('--id', newId()), 'nothing to send: no archived event matches\n');
});

archive('deliveries that are selected are sent to their endpoints alone', async () => {
  const { events, replay, stored } = await archived();
  assert.is((await replay(...JUNE, '--outcome', 'failure')).stdout, 'sent 2 events\n');
  const shown = async () =>
    (await stored()).map(({ coordinates, message_type, endpoint_id, owner_id }) => [
      coordinates,
      message_type,
      endpoint_id,
      owner_id,
    ]);
  assert.equal(await shown(), [
    [`archive/${events[0]!.id}`, 'single', BANK, null],
    [`archive/${events[1]!.id}`, 'single', SHOP, null],
  ]);
  const toShop = await replay(...JUNE, '--endpoint-id', SHOP);
  assert.is(toShop.stdout, 'sent 1 event\n', 'the other one was sent before');
  assert.is(
    (await replay(...JUNE, '--endpoint-id', newId())).stdout,
    'nothing to send: no archived event matches\n',
  );
});

archive('wrong use is refused with what to do', async () => {
  const { projectId, replay } = await archived();
  const refused = async (pattern: RegExp, ...args: readonly string[]) => {
    const { code, stderr } = await replay(...args);
    assert.is(code, 2);
    assert.match(stderr, pattern);
  };
  await refused(/needs --from and --to, or --id/);
  await refused(/needs --from and --to, or --id/, ...JUNE, '--id', newId());
  await refused(/--to is before --from/, '--from', '2025-06-02', '--to', '2025-06-01');
  await refused(
    /--from must be a day or a time, not "June"/,
    '--from',
    'June',
    '--to',
    '2025-06-01',
  );
  await refused(/--outcome must be one of/, ...JUNE, '--outcome', 'lost');
  const run = (settings: object, project = projectId) =>
    runHere('archive:replay', ['--project-id', project, ...JUNE], { ...config, ...settings });
  assert.match((await run({}, newId())).stderr, /project \S+ not found/);
  const off = await run({ archive: {} });
  assert.equal([off.code, /archive\.url is not set/.test(off.stderr)], [1, true]);
  assert.match(
    (await run({ archive: { ...s3.settings, url: 's3://no-such-bucket' } })).stderr,
    /the archive s3:\/\/no-such-bucket cannot be used: NoSuchBucket/,
  );
});

archive('events are sent at the rate of the settings', async () => {
  const { replay } = await archived();
  const startedAtMs = performance.now();
  await replay(...JUNE);
  const fastMs = performance.now() - startedAtMs;
  const { projectId } = await archived();
  const slowAtMs = performance.now();
  await runHere('archive:replay', ['--project-id', projectId, ...JUNE], {
    ...config,
    limits: { events_per_second: 1 },
  });
  assert.ok(performance.now() - slowAtMs > 2_900, `${fastMs} ms without a limit`);
});

archive.run();
