import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { decodeValue, encodeValue } from '#store/kv/versions';
import { setEndpointStatus } from '#store/config/endpoints';
import { gateway, runGateway } from '../../support/gateway.js';
import { connectionOf } from '../../support/database.js';
import { lockAwaited } from '../../store/batches.js';
import { makeDelivery, makeEndpoint, makeEvents, makeProject } from '../../store/made.js';
import { migratedDatabase } from '../../store/migrated.js';
import { openRedisKv } from '../../store/redis-kv.js';
import { redis } from '../../support/redis.js';
import { runHere } from '../run-here.js';

const retry = suite('cli/commands/retry');

const [db, kv] = await Promise.all([migratedDatabase(), redis()]);
const config = { database: connectionOf(db.url), kv: kv.connection };
retry.after(async () => {
  await kv.close();
  await db.close();
});

async function failures(count: number, status = 'failure') {
  const { id: projectId } = await makeProject(db);
  const { id: endpointId } = await makeEndpoint(db, projectId);
  const now = Date.now();
  const events = await makeEvents(
    db,
    projectId,
    Array.from({ length: count }, (_, k) => ({ atMs: now - k })),
  );
  for (const eventId of events)
    await makeDelivery(db, { projectId, eventId, endpointId, status, attempts: 11 });
  return { projectId, endpointId, events };
}

const run = (...args: readonly string[]) => runGateway(['retry', ...args], { config });

async function scheduled(projectId: string): Promise<number> {
  return (
    await db.rows(`select from event_deliveries where project_id = $1 and status = 'scheduled'`, [
      projectId,
    ])
  ).length;
}

retry(
  're-queues what failed, says how many on standard output, and a second run finds nothing',
  async () => {
    const { projectId } = await failures(3);
    const narrowed = ['--status', 'failure', '--time', '1h', '--project-id', projectId];
    const first = await run(...narrowed);
    assert.equal(
      [first.code, first.stdout, first.stderr],
      [0, 're-queued 3 event deliveries\n', ''],
    );
    assert.is(await scheduled(projectId), 3);
    const second = await run(...narrowed);
    assert.equal(
      [second.code, second.stdout],
      [0, 'nothing to re-queue: no event delivery of the last 1h has status failure\n'],
    );
  },
);

retry('a dry run counts and changes nothing', async () => {
  const it = await failures(2);
  const { id: other } = await makeEndpoint(db, it.projectId, { name: 'bank' });
  await makeDelivery(db, {
    projectId: it.projectId,
    eventId: it.events[0]!,
    endpointId: other,
    status: 'failure',
  });
  const narrowed = [
    '--status',
    'failure',
    '--time',
    '1h',
    '--project-id',
    it.projectId,
    '--dry-run',
  ];
  const { code, stdout } = await run(...narrowed);
  assert.equal([code, stdout], [0, '3 event deliveries would be re-queued\n']);
  const all = await run(
    '--status',
    'failure',
    '--time',
    '1h',
    '--event-id',
    it.events[0]!,
    '--dry-run',
  );
  assert.is(all.stdout, '2 event deliveries would be re-queued\n');
  const record = JSON.parse((await run(...narrowed, '--json')).stdout) as Record<string, unknown>;
  assert.equal([record['dry_run'], record['requeued'], record['stopped']], [true, 3, false]);
  assert.equal(record['projects'], [
    { project_id: it.projectId, project_name: 'orders', due: 3, held: 0, left: 0 },
  ]);
  assert.is(await scheduled(it.projectId), 0);
});

retry(
  'one delivery is one delivery, and what is held or skipped is told with the reason',
  async () => {
    const it = await failures(1);
    const { id: paused } = await makeEndpoint(db, it.projectId, { name: 'paused' });
    const { id: inactive } = await makeEndpoint(db, it.projectId, { name: 'inactive' });
    for (const endpointId of [paused, inactive])
      await makeDelivery(db, {
        projectId: it.projectId,
        eventId: it.events[0]!,
        endpointId,
        status: 'failure',
      });
    await setEndpointStatus(db.knex, it.projectId, paused, { status: 'paused', reason: null });
    await setEndpointStatus(db.knex, it.projectId, inactive, { status: 'inactive', reason: null });
    const { stdout, stderr } = await run(
      '--status',
      'failure',
      '--time',
      '1h',
      '--project-id',
      it.projectId,
    );
    assert.is(stdout, 're-queued 2 event deliveries\n');
    assert.match(stderr, '1 event delivery held until the endpoint is no longer paused\n');
    assert.match(stderr, '1 event delivery skipped: the endpoint is inactive or deleted, ');
  },
);

retry('what was delivered is delivered again with --force only', async () => {
  const { projectId, events } = await failures(2, 'success');
  const narrowed = ['--status', 'success', '--time', '1h', '--event-id', events[0]!];
  const refused = await run(...narrowed);
  assert.is(refused.code, 2);
  assert.match(
    refused.stderr,
    /if re-queued, their endpoints receive them again\nfix: {3}add --force/,
  );
  const dry = await run(...narrowed, '--dry-run');
  assert.equal(
    [dry.code, dry.stdout],
    [0, '1 event delivery would be re-queued\n'],
    'a dry run sends nothing',
  );
  assert.is((await run(...narrowed, '--force')).stdout, 're-queued 1 event delivery\n');
  assert.is(await scheduled(projectId), 1);
});

retry('--status takes every status in any case, and only success asks for --force', async () => {
  const statuses = ['scheduled', 'processing', 'retry', 'failure', 'discarded', 'success'];
  const all = await db.rows<{ status: string }>(
    'select unnest(enum_range(null::event_delivery_status))::text as status',
  );
  assert.equal(all.map(({ status }) => status).sort(), [...statuses].sort());
  for (const status of statuses) {
    const { projectId } = await failures(1, status);
    await db.rows(
      `update event_deliveries set next_attempt_at = next_attempt_at + interval '1 hour' where project_id = $1`,
      [projectId],
    );
    const force = status === 'success' ? ['--force'] : [];
    const typed = `${status[0]!.toUpperCase()}${status.slice(1)}`;
    const { code, stdout, stderr } = await run(
      '--status',
      typed,
      '--time',
      '30m1h',
      '--project-id',
      projectId,
      ...force,
    );
    assert.is(code, 0, stderr);
    assert.is(stdout, 're-queued 1 event delivery\n', status);
  }
});

retry('what waits for an open breaker says until when, and how to close it', async () => {
  const { projectId, endpointId } = await failures(3);
  const untilMs = Date.now() + 600_000;
  const open = {
    project_id: projectId,
    state: 'open',
    since_ms: 0,
    until_ms: untilMs,
    requests: 9,
  };
  const shared = await openRedisKv(kv.connection);
  try {
    await shared
      .map('breakers')
      .change([{ field: endpointId, from: undefined, to: encodeValue('breaker', open) }]);
    const here = (args: readonly string[], settings: object = config) =>
      runHere('retry', ['--time', '1h', '--project-id', projectId, ...args], settings);
    const until = new Date(untilMs).toISOString();
    const { stdout, stderr } = await here(['--status', 'failure']);
    assert.is(stdout, 're-queued 3 event deliveries\n');
    assert.is(
      stderr,
      `3 event deliveries wait: the circuit breaker of shop is open until ${until}\n  close it: gateway utils circuit-breakers --endpoint-id ${endpointId} --reset\n`,
    );
    await db.rows(
      `update event_deliveries set next_attempt_at = now() + interval '1 hour' where project_id = $1`,
      [projectId],
    );
    const waiting = ['--status', 'scheduled', '--endpoint-id', endpointId];
    const { requeued, behind_breakers: behind } = JSON.parse(
      (await here([...waiting, '--json', '--dry-run'])).stdout,
    ) as Record<string, unknown>;
    assert.equal(
      [requeued, behind],
      [3, [{ endpoint_id: endpointId, endpoint_name: 'shop', count: 3, until }]],
    );
    assert.match((await here(waiting)).stderr, 'is open; the next delivery tries the endpoint');
    const { entries, nowMs } = await shared.map('breakers').all();
    const probed = decodeValue<{ until_ms: number }>('breaker', entries.get(endpointId));
    assert.ok(probed!.until_ms <= nowMs, 'of one endpoint, a delivery probes the breaker now');
  } finally {
    await shared.close();
  }
});

retry('what an agent is sending is skipped with its reason', async () => {
  const { projectId } = await failures(1, 'processing');
  await db.rows(
    `with a as (insert into agents (name, expires_at) values ('alive', now() + interval '1 hour') returning id)
     update event_deliveries set claimed_by = a.id from a where project_id = $1`,
    [projectId],
  );
  const { stdout, stderr } = await run(
    '--status',
    'processing',
    '--time',
    '1h',
    '--project-id',
    projectId,
  );
  assert.is(stdout, 're-queued 0 event deliveries\n');
  assert.match(stderr, '1 event delivery skipped: ');
});

retry('wrong use is told with what is allowed', async () => {
  for (const [args, sentence] of [
    [
      [],
      /^error: gateway retry needs --status and --time\nfix:.*failure, discarded, retry, scheduled, processing, success/,
    ],
    [['--status', 'failure'], /^error: gateway retry needs --time\n/],
    [
      ['--status', 'failur', '--time', '1h'],
      /must be one of failure, discarded, .*, not "failur"; did you mean failure\?/,
    ],
    [['--status', 'failure', '--time', '2x'], /--time must be a duration, not "2x"\nfix: .*1h30m/],
    [
      ['--status', 'failure', '--time', '1h', '--endpoint-id', 'x'],
      /--endpoint-id must be an id, not "x"/,
    ],
  ] as const) {
    const { code, stderr } = await run(...args);
    assert.is(code, 2, stderr);
    assert.match(stderr, sentence);
  }
});

retry('an id that is not there is an error and not nothing', async () => {
  for (const flag of ['--project-id', '--event-id', '--endpoint-id']) {
    const { code, stdout, stderr } = await run(
      '--status',
      'failure',
      '--time',
      '1h',
      flag,
      '019ab3c4-5d6e-7f70-9123-456789abcdef',
    );
    assert.is(code, 1);
    assert.is(stdout, '');
    assert.match(
      stderr,
      /^error: (project|event|endpoint) 019ab3c4-5d6e-7f70-9123-456789abcdef not found\n/,
    );
  }
});

/** Creates a project with `count` failed deliveries, each in another millisecond. */
async function many(count: number): Promise<string> {
  const { projectId, endpointId } = await failures(0);
  await db.rows(
    `insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, status)
     select $1, (lpad(to_hex(ms), 12, '0') || '8' || substr(md5(ms::text), 1, 3) || '8' || substr(md5(ms::text), 4, 15))::uuid, to_timestamp(ms / 1000.0),
            gen_random_uuid(), $2, 'failure'
     from (select (extract(epoch from now()) * 1000)::bigint - n as ms from generate_series(1, $3::int) n) m`,
    [projectId, endpointId, count],
  );
  return projectId;
}

retry(
  'when it fails on the way it says how many were done, and the next run does the rest',
  async () => {
    const projectId = await many(2_500);
    const narrowed = ['--status', 'failure', '--time', '1h', '--project-id', projectId];
    await db.rows(
      `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$`,
    );
    const [last] = await db.rows<{ id: string }>(
      'select id from event_deliveries where project_id = $1 order by id desc limit 1',
      [projectId],
    );
    await db.rows(
      `create trigger refuse before update on event_deliveries for each row when (old.id = '${last!.id}') execute function refuse()`,
    );
    const { code, stdout, stderr } = await run(...narrowed);
    await db.rows('drop function refuse cascade');
    assert.equal([code, stdout], [1, '']);
    assert.match(
      stderr,
      're-queued 0 event deliveries or more before the failure; run the command again to continue with the rest\n',
    );
    assert.is(await scheduled(projectId), 2_000);
    assert.is((await run(...narrowed)).stdout, 're-queued 500 event deliveries\n');
  },
);

retry(
  'Ctrl-C ends it after the running request, with status 130 and how many were done; the next run does the rest',
  async () => {
    await db.rows(`update event_deliveries set status = 'success' where status = 'failure'`);
    const first = await many(1_500);
    const second = await many(2);
    const args = ['--status', 'failure', '--time', '1h'];
    const blocker = await db.connect();
    try {
      // Blocks the first project, so that the signal arrives in the middle of it.
      await blocker.query('begin');
      await blocker.query('lock table event_deliveries in share mode');
      const running = gateway(['retry', ...args], { config });
      await lockAwaited(db, 'the first batch');
      process.kill(running.pid, 'SIGINT');
      await blocker.query('commit');
      assert.equal(await running.ended, { code: 130, signal: null });
      assert.is(running.stdout, 're-queued 1,500 event deliveries\n');
      assert.match(
        running.stderr,
        'stopped before the end; re-queued deliveries stay re-queued; run the command again to continue with the rest\n',
      );
      assert.equal([await scheduled(first), await scheduled(second)], [1_500, 0]);
    } finally {
      await blocker.end();
    }
    assert.is((await run(...args)).stdout, 're-queued 2 event deliveries\n');
  },
);

retry.run();
