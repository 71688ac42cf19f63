import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveConfig } from '#core/config/config';
import { createMeter, type Meter, createCollectors } from '#core/metrics/meter';
import { series } from '#core/metrics/series';
import type { ActivatedPlugins } from '#core/plugins/activation';
import { exportSample } from '#ingest/telemetry/queue-series';
import { startSampler, mergeSamples } from '#ingest/telemetry/sampler';
import { silentLog } from '#core/logging/log';
import pullmetrics from '@gateway/metrics-pullmetrics';
import type { QueueSample } from '#store/counts/queue-sample';
import { recordAttempts } from '#store/deliveries/delivery-attempts';
import { acceptEvents } from '#store/events/events';
import type { Kv } from '#store/kv/kv';
import { MemoryKv } from '#store/kv/memory-kv';
import { keptLog } from '../../agent/running.js';
import { exposition } from '../../support/exposition.js';
import { proxy } from '../../support/proxy.js';
import { redis } from '../../support/redis.js';
import { until } from '../../support/until.js';
import {
  attempt,
  batch,
  empty,
  lockAwaited,
  newDelivery,
  newEvents,
  noting,
  PROJECT,
  SOURCE,
} from '../../store/batches.js';
import { forgetAllCounts } from '../../store/counted.js';
import { makeEndpoint, makeProject } from '../../store/made.js';
import { migratedDatabase, openUrl } from '../../store/migrated.js';
import { openRedisKv } from '../../store/redis-kv.js';

const sampler = suite('ingest/telemetry/sampler');

const db = await migratedDatabase();
sampler.after(() => db.close());
sampler.before.each(async () => {
  await empty(db);
  await forgetAllCounts(db);
});

interface Process {
  readonly meter: Meter;
  readonly lines: ReturnType<typeof keptLog>['lines'];
  /** The values of a series by the values of these labels. */
  values(name: string, ...labels: readonly string[]): Promise<Record<string, number>>;
  stop(): Promise<void>;
}

async function start({
  sampleTimeSeconds = 0.05,
  queryTimeoutSeconds = 30,
  pool = db.pool,
  shard,
  kv = new MemoryKv(),
}: {
  sampleTimeSeconds?: number;
  queryTimeoutSeconds?: number;
  pool?: typeof db.pool;
  /** The pool of a second shard. */
  shard?: typeof db.pool;
  kv?: Kv;
} = {}): Promise<Process> {
  const collectors = createCollectors(silentLog);
  const backend = await pullmetrics.start(
    series,
    {},
    { collect: () => collectors.run(), log: silentLog },
  );
  const meter = createMeter(backend, { collectors });
  const { log, lines } = keptLog();
  const plugins: Pick<ActivatedPlugins, 'meter' | 'metrics'> = {
    meter,
    metrics: { name: 'pullmetrics', sampleTimeSeconds },
  };
  const { config } = resolveConfig({ env: {}, command: 'agent', file: {} });
  const stop = startSampler({
    config: { ...config, query_timeout: queryTimeoutSeconds },
    plugins,
    shards: { all: [shardOf('default', pool), ...(shard ? [shardOf('second', shard, pool)] : [])] },
    kv,
    log,
  });
  return {
    meter,
    lines,
    stop,
    async values(name, ...labels) {
      const shown = exposition((await meter.expose()).body);
      return Object.fromEntries(
        shown
          .all(name)
          .map((sample) => [labels.map((label) => sample.labels[label]).join(' '), sample.value]),
      );
    },
  };
}

const shardOf = (name: string, pool: typeof db.pool, control = pool) => ({
  name,
  planes: { shard: name, control, data: pool },
  database: { pool, sessions: pool },
});

async function beside(
  options: Parameters<typeof start>[0],
  test: (process: Process) => Promise<void>,
): Promise<void> {
  const process = await start(options);
  try {
    await test(process);
  } finally {
    await process.stop();
  }
}

const failures = (process: Process) =>
  process.values('gateway_metrics_sample_failures_total', 'sample');

sampler('the queue series of Postgres have their labels and values', async () => {
  const { id: projectId, organisation_id: organisationId } = await makeProject(db, 'shop');
  const { id: endpointId } = await makeEndpoint(db, projectId);
  const events = newEvents(5, { projectId, occurredAtMs: Date.now() - 100_000 });
  const made = events.map((event) => newDelivery(event, { endpointId }));
  await acceptEvents(db.pool, batch(events, { deliveries: made }));
  await recordAttempts(db.pool, [
    attempt(made[0]!),
    attempt(made[1]!, { status: 'failure', code: null, errorClass: 'dns' }),
  ]);
  await beside({}, async ({ values }) => {
    await until(
      'a sample',
      async () =>
        Object.keys(await values('gateway_event_delivery_attempts_total', 'status')).length > 0,
    );
    const labels = [
      'project',
      'project_name',
      'endpoint',
      'event_type',
      'source',
      'organisation_id',
      'organisation_name',
      'status',
    ];
    const of = [projectId, 'shop', endpointId, 'order.paid', SOURCE, organisationId, 'Acme'].join(
      ' ',
    );
    assert.equal(await values('gateway_event_delivery_queue_total', ...labels), {
      [`${of} processing`]: 3,
      [`${of} failure`]: 1,
      [`${of} success`]: 1,
    });
    assert.equal(await values('gateway_event_queue_total', 'project', 'source', 'status'), {
      [`${projectId} ${SOURCE} processed`]: 5,
    });
    assert.equal(
      await values(
        'gateway_event_delivery_attempts_total',
        'project',
        'endpoint',
        'status',
        'http_status_code',
      ),
      {
        [`${projectId} ${endpointId} success 200`]: 1,
        [`${projectId} ${endpointId} failure none`]: 1,
      },
    );
    const backlog = await values(
      'gateway_event_delivery_queue_backlog_seconds',
      'project',
      'endpoint',
      'source',
    );
    assert.equal(Object.keys(backlog), [`${projectId} ${endpointId} ${SOURCE}`]);
    const [age] = Object.values(backlog);
    assert.ok(age! > 99 && age! < 160, String(age));
    assert.equal(await values('gateway_event_queue_backlog_seconds', 'source'), {});
    assert.ok((await values('gateway_metrics_sample_seconds'))['']! > 0);
  });
});

sampler('parked keys have their number, what waits behind them and their age', async () => {
  const { id: projectId } = await makeProject(db, 'shop');
  const { id: endpointId } = await makeEndpoint(db, projectId);
  const place = (key: string, isFirst: boolean, parked = 'null') =>
    db.rows(
      `with q as (
         insert into ordered_deliveries (project_id, endpoint_id, order_key, delivery_id, occurred_at)
         values ($1, $2, md5($3)::uuid, gen_random_uuid(), now()) returning *)
       insert into ordered_keys (project_id, endpoint_id, order_key, delivery_id, occurred_at, parked_at)
       select project_id, endpoint_id, order_key, delivery_id, occurred_at, ${parked} from q where $4`,
      [projectId, endpointId, key, isFirst],
    );
  await place('1', true, `now() - interval '100 seconds'`);
  await place('1', false);
  await place('1', false);
  await place('2', true, 'now()');
  await place('3', true);
  await place('3', false);
  await db.rows('truncate metric_samples');
  await beside({}, async ({ values }) => {
    const of = (series: Parameters<Process['values']>[0]) => values(series, 'project', 'endpoint');
    const key = `${projectId} ${endpointId}`;
    await until('a sample', async () => (await of('gateway_parked_keys'))[key] !== undefined);
    assert.equal(await of('gateway_parked_keys'), { [key]: 2 });
    assert.equal(await of('gateway_parked_deliveries'), { [key]: 2 });
    const age = (await of('gateway_parked_keys_backlog_seconds'))[key]!;
    assert.ok(age >= 100 && age < 160, String(age));
  });
  await db.rows('delete from ordered_keys');
  await db.rows('delete from ordered_deliveries');
});

sampler('what is over is gone from the gauges with the next sample', async () => {
  const events = newEvents(1);
  const made = events.map((event) => newDelivery(event));
  await acceptEvents(db.pool, batch(events, { deliveries: made }));
  await beside({}, async ({ values }) => {
    const shows = async (...statuses: string[]) =>
      Object.keys(await values('gateway_event_delivery_queue_total', 'status')).join() ===
      statuses.join();
    await until('a delivery under way', () => shows('processing'));
    await recordAttempts(db.pool, [attempt(made[0]!)]);
    await until('its success alone', () => shows('success'));
    assert.equal(await values('gateway_event_delivery_queue_backlog_seconds', 'endpoint'), {});
  });
});

sampler('of many processes one takes the sample, and all show it', async () => {
  await acceptEvents(db.pool, batch(newEvents(2)));
  await db.rows('truncate metric_samples');
  const databases = Array.from({ length: 4 }, () => openUrl(db.url, 2));
  const processes = await Promise.all(
    databases.map(({ pool }) => start({ pool, sampleTimeSeconds: 600 })),
  );
  try {
    for (const { values } of processes)
      await until(
        'the sample',
        async () => (await values('gateway_event_queue_total', 'project'))[PROJECT] === 2,
      );
    // A second sample would create another row version.
    assert.equal(await db.rows('select ctid::text as version from metric_samples'), [
      { version: '(0,1)' },
    ]);
  } finally {
    await Promise.all(processes.map(({ stop }) => stop()));
    await Promise.all(databases.map((it) => it.close()));
  }
});

sampler(
  'a sample that fails leaves the values, is counted, and is told once until it works again',
  async () => {
    await acceptEvents(db.pool, batch(newEvents(2)));
    await beside({}, async (process) => {
      const shown = async () =>
        (await process.values('gateway_event_queue_total', 'project'))[PROJECT];
      await until('the first sample', async () => (await shown()) === 2);
      assert.equal(await failures(process), { postgres: 0, kv: 0 });
      await db.rows('alter table event_counts rename to elsewhere');
      try {
        await until('three failures', async () => (await failures(process))['postgres']! >= 3);
        assert.is(await shown(), 2);
        const age = async () =>
          (await process.values('gateway_metrics_sample_age_seconds', 'sample'))['postgres']!;
        const before = await age();
        await until('more age', async () => (await age()) > before);
        const warnings = process.lines.filter(({ level }) => level === 'warn');
        assert.is(warnings.length, 1);
        assert.match(
          warnings[0]!.sentence,
          /query_timeout \(30 s, GATEWAY_METRICS_QUERY_TIMEOUT\)/,
        );
      } finally {
        await db.rows('alter table elsewhere rename to event_counts');
      }
      await acceptEvents(db.pool, batch(newEvents(1)));
      await until('the next sample', async () => (await shown()) === 3);
      await until('the word that it works', () =>
        process.lines.some(
          ({ level, sentence }) => level === 'info' && /current again/.test(sentence),
        ),
      );
    });
  },
);

sampler('a sample that takes longer than query_timeout is given up', async () => {
  const client = await db.pool.connect();
  try {
    await client.query('begin; lock table event_counts in access exclusive mode');
    await beside({ queryTimeoutSeconds: 0.1 }, async (process) => {
      await until('a failure', async () => (await failures(process))['postgres']! > 0);
      const [warning] = process.lines;
      assert.match(String((warning?.fields as { error?: Error }).error), /statement timeout/);
      await client.query('rollback');
      await until(
        'a sample',
        async () => (await db.rows('select from metric_samples')).length === 1,
      );
    });
  } finally {
    await client.query('rollback');
    client.release();
  }
});

sampler('a process that stops does not wait for a sample that is under way', async () => {
  const client = await db.pool.connect();
  const process = await start({ queryTimeoutSeconds: 600 });
  try {
    await client.query('begin; lock table event_counts in access exclusive mode');
    await lockAwaited(db, 'a sample that waits');
    let isStopped = false;
    const stopping = process.stop().then(() => (isStopped = true));
    await until('the stop', () => isStopped, { withinMs: 10_000 }).finally(() =>
      client.query('rollback'),
    );
    await stopping;
  } finally {
    client.release(true);
  }
  assert.equal(process.lines, []);
});

sampler(
  'when the clock of Postgres is set back, the next sample does not wait until it has caught up',
  async () => {
    const seconds = async () =>
      (
        await db.rows<{ ago: number }>(
          'select extract(epoch from now() - taken_at)::int as ago from metric_samples',
        )
      )[0]?.ago;
    await beside({}, async () => {
      await until('a sample', async () => (await seconds()) !== undefined);
    });
    await db.rows(`update metric_samples set taken_at = now() + interval '1 hour'`);
    await beside({}, async () => {
      await until('another one', async () => (await seconds())! >= 0, { withinMs: 10_000 });
    });
  },
);

sampler('a KV that is not connected yet when the process starts is no failure', async () => {
  const kv = new MemoryKv();
  const queue = kv.queue('create-event');
  const load = queue.load.bind(queue);
  let asked = 0;
  queue.load = () => (++asked <= 2 ? Promise.reject(new Error('not connected')) : load());
  await beside({ kv }, async (process) => {
    const shown = () => process.values('gateway_event_queue_scheduled_total', 'status');
    await until('the queue', async () => (await shown())['scheduled'] === 0);
    assert.is((await failures(process))['kv'], 0);
    assert.equal(process.lines, []);
  });
});

sampler('the queues of KV are shown by what waits and what was pulled', async () => {
  const kv = new MemoryKv();
  await kv.queue('create-event').push(['a', 'b', 'c']);
  await kv.queue('create-event').pull(1, new AbortController().signal);
  await kv.queue('match-subscriptions').push(['d']);
  await beside({ kv }, async ({ values }) => {
    await until(
      'the queues',
      async () => 'scheduled' in (await values('gateway_event_queue_scheduled_total', 'status')),
    );
    assert.equal(await values('gateway_event_queue_scheduled_total', 'status'), {
      scheduled: 2,
      processing: 1,
    });
    assert.equal(await values('gateway_event_workflow_queue_match_subscriptions_total', 'status'), {
      scheduled: 1,
      processing: 0,
    });
  });
});

sampler('while KV is away its queues are not shown, least of all as empty', async () => {
  const own = await redis();
  const away = await proxy({ port: own.connection.port });
  const kv = await openRedisKv({ ...own.connection, port: away.port });
  try {
    await kv.queue('create-event').push(['a', 'b']);
    await beside({ kv }, async (process) => {
      const shown = () => process.values('gateway_event_queue_scheduled_total', 'status');
      await until('the queue', async () => (await shown())['scheduled'] === 2);
      away.cut();
      await until('failures', async () => (await failures(process))['kv']! >= 2);
      assert.equal(await shown(), {});
      assert.equal(
        await process.values('gateway_event_workflow_queue_match_subscriptions_total', 'status'),
        {},
      );
      assert.is(process.lines.filter(({ level }) => level === 'warn').length, 1);
      assert.is((await failures(process))['postgres'], 0);
      away.restore();
      await until('the queue again', async () => (await shown())['scheduled'] === 2);
    });
  } finally {
    await kv.close();
    await away.close();
    await own.close();
  }
});

sampler('what a sample sums up is told as folded, until it is whole again', async () => {
  await beside({ sampleTimeSeconds: 600 }, async ({ meter, values }) => {
    await until(
      'its own sample',
      async () => (await values('gateway_metrics_sample_seconds'))['']! > 0,
    );
    const sample = { events: [], deliveries: [], attempts: [], projects: {} };
    const shown = async (attempts: number) => {
      await exportSample(meter, { ...sample, hidden: { events: 0, deliveries: 0, attempts } });
      return (await values('gateway_metrics_folded', 'series'))[
        'gateway_event_delivery_attempts_total'
      ];
    };
    assert.is(await shown(0), 0);
    assert.is(await shown(7), 7);
    assert.is(await shown(0), 0);
  });
});

sampler('without a metrics backend nothing is asked', async () => {
  const { pool, texts } = noting(db);
  const { config } = resolveConfig({ env: {}, command: 'agent', file: {} });
  const kv = new MemoryKv();
  const queue = kv.queue('create-event');
  let asked = 0;
  queue.load = () => Promise.resolve((asked++, { waiting: 0, pulled: 0 }));
  const stop = startSampler({
    config,
    plugins: { meter: createMeter(undefined) },
    shards: { all: [shardOf('default', pool)] },
    kv,
    log: silentLog,
  });
  await stop();
  assert.equal([texts.size, asked], [0, 0]);
});

sampler(
  'no exposition sees half of a sample, and it is not shown in one go, whoever looks and however many show one',
  async () => {
    await beside({ sampleTimeSeconds: 600 }, async ({ meter, values }) => {
      await until(
        'its own sample',
        async () => (await values('gateway_metrics_sample_seconds'))['']! > 0,
      );
      // Setting takes so long that it must yield.
      let inTurn = 0;
      let most = 0;
      const slow: Meter = {
        ...meter,
        set(...args: Parameters<Meter['set']>) {
          if (inTurn++ === 0) setImmediate(() => (inTurn = 0));
          most = Math.max(most, inTurn);
          for (const until = performance.now() + 0.1; performance.now() < until;);
          meter.set(...args);
        },
      };
      const sampleOf = (value: number) => ({
        ...{
          events: [],
          attempts: [],
          projects: {},
          hidden: { events: 0, deliveries: 0, attempts: 0 },
        },
        deliveries: Array.from(
          { length: 200 },
          (_, n) =>
            [PROJECT, `endpoint ${n}`, 'api', 'order.paid', 'success', value, value] as const,
        ),
      });
      await exportSample(slow, sampleOf(1));
      const looks: number[] = [];
      let isShown = false;
      const showing = Promise.all(
        [2, 3].map((value) => exportSample(slow, sampleOf(value))),
      ).finally(() => (isShown = true));
      while (!isShown) {
        for (const series of [
          'gateway_event_delivery_queue_total',
          'gateway_event_delivery_queue_backlog_seconds',
        ]) {
          const shown = Object.values(await values(series, 'endpoint'));
          assert.is(shown.length, 200, series);
          assert.is(new Set(shown).size, 1, series);
          looks.push(shown[0]!);
        }
      }
      await showing;
      assert.ok(looks.length > 4, `${looks.length} looks`);
      assert.is(
        Object.values(await values('gateway_event_delivery_queue_total', 'endpoint'))[0],
        3,
      );
      assert.ok(most < 50, `${most} label sets in one turn`);
    });
  },
);

sampler('a shard that hangs delays the samples of no other', async () => {
  const { port } = db.pool.options as { port: number };
  const line = await proxy({ port });
  const second = openUrl(db.url.replace(`:${port}/`, `:${line.port}/`));
  line.freeze();
  try {
    await beside({ shard: second.pool }, async ({ values }) => {
      for (const count of [1, 2]) {
        await acceptEvents(db.pool, batch(newEvents(1)));
        await until(
          `${count} events`,
          async () => (await values('gateway_event_queue_total', 'status'))['processed'] === count,
          { withinMs: 4_000 },
        );
      }
    });
  } finally {
    line.restore();
    await second.close();
    await line.close();
  }
});

sampler('samples of shards are joined, and equal label sets are added', () => {
  const [one, other] = ['one', 'other'].map((project) => ({
    events: [
      [project, 'api', 'pending', 2, 3],
      ['moved', 'api', 'pending', project === 'one' ? 1 : 4, project === 'one' ? null : 7],
    ],
    deliveries: [],
    attempts: [],
    hidden: { events: 1, deliveries: 0, attempts: 0 },
    projects: { [project]: ['orders', 'o', 'Acme'] },
  })) as unknown as [QueueSample, QueueSample];
  assert.is(mergeSamples([one]), one);
  const { events, hidden, projects } = mergeSamples([one, other]);
  assert.equal(events, [
    ['one', 'api', 'pending', 2, 3],
    ['moved', 'api', 'pending', 5, 7],
    ['other', 'api', 'pending', 2, 3],
  ]);
  assert.is(hidden.events, 2);
  assert.equal(Object.keys(projects), ['one', 'other']);
});

sampler.run();
