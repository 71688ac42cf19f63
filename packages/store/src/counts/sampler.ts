import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Config } from '@gateway/core/config';
import { kvReason } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { inSlices, repeat } from '@gateway/core/process';
import type { Meter } from '@gateway/core/metrics/meter';
import type { SeriesName } from '@gateway/core/metrics/series';
import { type Kv, type QueueLoad, queueOf } from '../kv/kv.js';
import type { Database } from '../postgres/database.js';
import type { Replicas } from '../postgres/replicas.js';
import type { Shard, Shards } from '../shards/open-shards.js';
import { DEFAULT_SHARD } from '../shards/shards.js';
import { lastSample, takeSample, type SampleTime } from './stored-sample.js';
import type { AttemptCount, DeliveryCount, EventCount, QueueSample } from './queue-sample.js';

interface SamplerOptions {
  readonly config: Pick<Config, 'query_timeout' | 'kv' | 'metrics'>;
  readonly plugins: Pick<ActivatedPlugins, 'meter' | 'metrics'>;
  readonly database: Pick<Database, 'pool' | 'sessions'>;
  /** All shards. By default, only that of `database`. */
  readonly shards?: Pick<Shards, 'all'>;
  /** Count what waits, if given. */
  readonly replicas?: Pick<Replicas, 'read'>;
  readonly kv: Kv;
  readonly log: Log;
}

/**
 * The maximum random share added to the interval, from 0 to 1, so that processes query at different
 * times.
 */
const JITTER = 0.1;
/**
 * The maximum share of time spent sampling, from 0 to 1. With millions of unfinished deliveries, a
 * sample takes seconds.
 */
const SHARE_MAX = 0.1;
/** The retry delay while another process samples, or until KV is connected. */
const AGAIN_MS = 200;
const CONNECT_MS = 3_000;

const QUEUES = [
  ['create-event', 'gateway_event_queue_scheduled_total'],
  ['match-subscriptions', 'gateway_event_workflow_queue_match_subscriptions_total'],
] as const;

interface Sampled {
  /** One that hangs delays no other. */
  parts(): readonly SampledPart[];
  ageSeconds(): number | undefined;
}

interface SampledPart {
  readonly name: string;
  tick(signal: AbortSignal): Promise<number>;
}

/**
 * Exports the queue series. One process samples Postgres for all; each process reads KV itself.
 * Does nothing without a metrics backend. The returned function stops the exports.
 */
export function startSampler(options: SamplerOptions): () => Promise<void> {
  const { plugins, config, log } = options;
  if (!plugins.metrics) return () => Promise.resolve();
  const { meter } = plugins;
  // Create the series at 0, so that the first failure shows up as an increase.
  for (const sample of ['postgres', 'kv'])
    meter.add('gateway_metrics_sample_failures_total', { sample }, 0);
  const everyMs = plugins.metrics.sampleTimeSeconds * 1000;
  const start = (
    sample: 'postgres' | 'kv',
    { parts, ageSeconds }: Sampled,
    sentence: string,
    details: (error: unknown) => object,
  ) => {
    const stopAge = meter.collect(() => {
      const age = ageSeconds();
      if (age !== undefined) meter.set('gateway_metrics_sample_age_seconds', { sample }, age);
    });
    const stops = new Map<string, () => Promise<void>>();
    const follow = () => {
      const current = parts();
      for (const [name, stop] of stops)
        if (!current.some((part) => part.name === name)) {
          stops.delete(name);
          void stop();
        }
      for (const { name, tick } of current.filter((part) => !stops.has(part.name)))
        stops.set(
          name,
          repeat(tick, {
            retryMs: everyMs,
            failed(error, isFirst) {
              meter.add('gateway_metrics_sample_failures_total', { sample });
              if (isFirst) log.warn({ sample, ...details(error) }, sentence);
            },
            recovered: () => log.info({ sample }, 'The queue series are current again.'),
          }),
        );
    };
    follow();
    const timer = setInterval(follow, everyMs).unref();
    return async () => {
      clearInterval(timer);
      stopAge();
      await Promise.all([...stops.values()].map((stop) => stop()));
    };
  };
  const late = `The queue series of Postgres stay as they are until a sample can be taken; one that takes longer than query_timeout (${config.query_timeout} s, GATEWAY_METRICS_QUERY_TIMEOUT) is given up.`;
  const stops = [
    start('postgres', postgresSampled(options, everyMs), late, (error) => ({ error })),
    start(
      'kv',
      kvSampled(options, everyMs),
      'The queue series of KV are not shown until it answers.',
      (error) => ({
        reason: kvReason(error, config.kv),
      }),
    ),
  ];
  return async () => {
    await Promise.all(stops.map((stop) => stop()));
  };
}

/** The last sample of a shard. */
interface ShardSample {
  readonly takenAt: string;
  readonly takenAtMs: number;
  readonly seconds: number;
  readonly sample: QueueSample;
}

function postgresSampled(options: SamplerOptions, everyMs: number): Sampled {
  const {
    database,
    replicas,
    plugins: { meter },
    config,
  } = options;
  const samples = new Map<string, ShardSample>();
  const dueMs = ({ age, seconds }: SampleTime) =>
    Math.max(everyMs, (seconds / SHARE_MAX) * 1000) - age * 1000;
  const isDue = (last: SampleTime | undefined) => last === undefined || dueMs(last) <= 0;

  /** Updates the sample of a shard. Returns the milliseconds until the next one. */
  const sampleShard = async (name: string, signal: AbortSignal): Promise<number> => {
    const shard = shardsOf(options).find((it) => it.name === name);
    if (!shard) return everyMs;
    const { pool, sessions } = shard.database;
    const known = samples.get(name)?.takenAt;
    let last = await lastSample(pool, known);
    if (isDue(last)) {
      const planes = { control: database.pool, data: sessions };
      await takeSample(planes, {
        isDue,
        timeoutMs: config.query_timeout * 1000,
        countsMax: config.metrics.max_label_sets,
        replicas: name === DEFAULT_SHARD ? replicas : undefined,
        signal,
      });
      last = await lastSample(pool, known);
    }
    if (last === undefined) return AGAIN_MS;
    const { takenAt, age, seconds, sample } = last;
    if (sample) {
      samples.set(name, { takenAt, takenAtMs: performance.now() - age * 1000, seconds, sample });
      const now = [...samples.values()];
      await exportSample(meter, mergeSamples(now.map((it) => it.sample)));
      meter.set('gateway_metrics_sample_seconds', {}, Math.max(...now.map((it) => it.seconds)));
    }
    // If a sample is still due, another process is taking it.
    return isDue(last) ? AGAIN_MS : dueMs(last) + everyMs * JITTER * Math.random();
  };

  return {
    parts() {
      const shards = shardsOf(options);
      for (const name of samples.keys())
        if (!shards.some((shard) => shard.name === name)) samples.delete(name);
      return shards.map(({ name }) => ({ name, tick: (signal) => sampleShard(name, signal) }));
    },
    ageSeconds() {
      const takenAtMs = Math.min(...[...samples.values()].map((it) => it.takenAtMs));
      return samples.size === 0 ? undefined : (performance.now() - takenAtMs) / 1000;
    },
  };
}

type SampledShard = Pick<Shard, 'name'> & { readonly database: SamplerOptions['database'] };

function shardsOf({ shards, database }: SamplerOptions): readonly SampledShard[] {
  return shards?.all ?? [{ name: DEFAULT_SHARD, database }];
}

/**
 * Joins the samples of shards. Counts with equal labels, as of a project that was moved, are added.
 */
export function mergeSamples(samples: readonly QueueSample[]): QueueSample {
  const [first, ...others] = samples;
  if (others.length === 0) return first!;
  const joined = <Count extends EventCount | DeliveryCount | AttemptCount>(
    countsOf: (sample: QueueSample) => readonly Count[],
  ): Count[] => {
    const sums = new Map<string, Count>();
    for (const count of samples.flatMap(countsOf)) {
      const [labels, n, age] = [count.slice(0, -2), count.at(-2) as number, count.at(-1)];
      const known = sums.get(labels.join());
      const ages = [age, known?.at(-1)].filter((it) => typeof it === 'number');
      const oldest = ages.length > 0 ? Math.max(...ages) : null;
      const sum = n + ((known?.at(-2) ?? 0) as number);
      sums.set(labels.join(), [...labels, sum, oldest] as readonly unknown[] as Count);
    }
    return [...sums.values()];
  };
  const hidden = (list: keyof QueueSample['hidden']) =>
    samples.reduce((sum, it) => sum + it.hidden[list], 0);
  return {
    events: joined(({ events }) => events),
    deliveries: joined(({ deliveries }) => deliveries),
    attempts: joined(({ attempts }) => attempts),
    hidden: {
      events: hidden('events'),
      deliveries: hidden('deliveries'),
      attempts: hidden('attempts'),
    },
    projects: Object.assign(
      {},
      ...samples.map(({ projects }) => projects),
    ) as QueueSample['projects'],
  };
}

function kvSampled(options: SamplerOptions, everyMs: number): Sampled {
  const {
    kv,
    plugins: { meter },
  } = options;
  let takenAtMs: number | undefined;
  const startedAtMs = performance.now();
  const tick = async () => {
    try {
      const loads = await Promise.all(
        QUEUES.map(async ([queue, series]) => {
          const names = shardsOf(options).map(({ name }) => queueOf(queue, name));
          const all = await Promise.all(names.map((name) => kv.queue(name).load()));
          const sum = (state: keyof QueueLoad) => all.reduce((n, load) => n + load[state], 0);
          return { series, waiting: sum('waiting'), pulled: sum('pulled') };
        }),
      );
      takenAtMs = performance.now();
      for (const { series, waiting, pulled } of loads) {
        meter.set(series, { status: 'scheduled' }, waiting);
        meter.set(series, { status: 'processing' }, pulled);
      }
      return everyMs;
    } catch (error) {
      if (takenAtMs === undefined && performance.now() - startedAtMs < CONNECT_MS)
        return Math.min(AGAIN_MS, everyMs);
      // Clear the series, because 0 would look like an empty queue.
      for (const [, series] of QUEUES) meter.clear(series);
      throw error;
    }
  };
  return {
    parts: () => [{ name: 'kv', tick }],
    ageSeconds: () => takenAtMs && (performance.now() - takenAtMs) / 1000,
  };
}

/**
 * The last export per meter. Each export waits for the previous one, because an agent and a server
 * in one process share the meter.
 */
const lastOf = new WeakMap<Meter, Promise<void>>();

/**
 * Replaces the exported sample in slices, because a thousand label sets take milliseconds.
 * Expositions wait until the current series is complete.
 */
export function exportSample(meter: Meter, sample: QueueSample): Promise<void> {
  const exporting = (lastOf.get(meter) ?? Promise.resolve()).then(() =>
    replaceSeries(meter, sample),
  );
  lastOf.set(
    meter,
    exporting.catch(() => undefined),
  );
  return exporting;
}

async function replaceSeries(meter: Meter, sample: QueueSample): Promise<void> {
  for (const series of SERIES) {
    const done = replaceOne(meter, sample, series);
    const stop = meter.collect(() => done);
    try {
      await done;
    } finally {
      stop();
    }
    // Let a waiting exposition read the values before the next series is cleared.
    await nextTurn();
  }
}

async function replaceOne(
  meter: Meter,
  sample: QueueSample,
  [name, steps, list]: (typeof SERIES)[number],
): Promise<void> {
  meter.clear(name);
  await inSlices(steps(meter, sample));
  // Clearing has reset the number of folded label sets to 0.
  if (list && sample.hidden[list] > 0)
    meter.set('gateway_metrics_folded', { series: name }, sample.hidden[list]);
}

/**
 * Each series, with a generator that sets one label set per step and, if counts may be folded, the
 * name of their list.
 */
const SERIES: readonly (readonly [
  SeriesName,
  (meter: Meter, sample: QueueSample) => Generator<void>,
  (keyof QueueSample['hidden'])?,
])[] = [
  ['gateway_event_queue_total', setEvents, 'events'],
  ['gateway_event_queue_backlog_seconds', setEventBacklogs],
  ['gateway_event_delivery_queue_total', setDeliveries, 'deliveries'],
  ['gateway_event_delivery_queue_backlog_seconds', setDeliveryBacklogs],
  ['gateway_event_delivery_attempts_total', setAttempts, 'attempts'],
];

function* setEvents(meter: Meter, { events }: QueueSample): Generator<void> {
  for (const [project, source, status, n] of events)
    yield meter.set('gateway_event_queue_total', { project, source, status }, n);
}

function* setEventBacklogs(meter: Meter, { events }: QueueSample): Generator<void> {
  for (const [project, source, , , age] of events)
    if (age !== null)
      yield meter.set('gateway_event_queue_backlog_seconds', { project, source }, age);
}

function* setDeliveries(meter: Meter, { deliveries, projects }: QueueSample): Generator<void> {
  for (const [project, endpoint, source, event_type, status, n] of deliveries) {
    const [project_name, organisation_id, organisation_name] = projects[project] ?? ['', '', ''];
    // Listing the labels is several times faster than spreading an object.
    const labels = {
      project,
      project_name,
      endpoint,
      status,
      event_type,
      source,
      organisation_id,
      organisation_name,
    };
    yield meter.set('gateway_event_delivery_queue_total', labels, n);
  }
}

function* setDeliveryBacklogs(meter: Meter, { deliveries }: QueueSample): Generator<void> {
  const oldest = new Map<
    string,
    { labels: { project: string; endpoint: string; source: string }; age: number }
  >();
  for (const [project, endpoint, source, , , , age] of deliveries) {
    const key = `${project} ${endpoint} ${source}`;
    if (age !== null && age > (oldest.get(key)?.age ?? -1))
      oldest.set(key, { labels: { project, endpoint, source }, age });
  }
  for (const { labels, age } of oldest.values())
    yield meter.set('gateway_event_delivery_queue_backlog_seconds', labels, age);
}

function* setAttempts(meter: Meter, { attempts }: QueueSample): Generator<void> {
  for (const [project, endpoint, status, httpStatus, n] of attempts)
    yield meter.set(
      'gateway_event_delivery_attempts_total',
      { project, endpoint, status, http_status_code: httpStatus },
      n,
    );
}
