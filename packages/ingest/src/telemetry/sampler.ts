import type { Config } from '@gateway/core/config';
import { kvReason } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { repeat } from '@gateway/core/process';
import {
  addUp,
  lastSample,
  takeSample,
  type QueueSample,
  type SampleTime,
} from '@gateway/store/counts';
import { type Kv, type QueueLoad, queueOf } from '@gateway/store/kv';
import type { Replicas } from '@gateway/store/postgres';
import { DEFAULT_SHARD, type Shard } from '@gateway/store/shards';
import { exportSample } from './queue-series.js';

interface SamplerOptions {
  readonly config: Pick<Config, 'query_timeout' | 'kv' | 'metrics'>;
  readonly plugins: Pick<ActivatedPlugins, 'meter' | 'metrics'>;
  readonly shards: {
    readonly all: readonly (Pick<Shard, 'name' | 'planes'> & {
      readonly database: Pick<Shard['database'], 'pool' | 'sessions'>;
    })[];
  };
  /** Count what waits on the default shard, if given. */
  readonly replicas?: Pick<Replicas, 'read'>;
  readonly kv: Kv;
  readonly log: Log;
}

/** A random share added to the interval, so that processes query at different times. */
const JITTER = 0.1;
/** The share of time. With millions of unfinished deliveries, a sample takes seconds. */
const SHARE_MAX = 0.1;
/** While another process samples, or until KV is connected. */
const AGAIN_MS = 200;
const CONNECT_MS = 3_000;

const QUEUES = [
  ['create-event', 'gateway_event_queue_scheduled_total'],
  ['match-subscriptions', 'gateway_event_workflow_queue_match_subscriptions_total'],
] as const;

interface ShardSample {
  readonly takenAt: string;
  readonly takenAtMs: number;
  readonly seconds: number;
  readonly sample: QueueSample;
}

/**
 * Exports the queue series. One process samples Postgres for all; each process reads KV itself.
 * Does nothing without a metrics backend. The returned function stops the exports.
 */
export function startSampler(options: SamplerOptions): () => Promise<void> {
  const { plugins, config, log, shards, kv } = options;
  if (!plugins.metrics) return () => Promise.resolve();
  const { meter } = plugins;
  const everyMs = plugins.metrics.sampleTimeSeconds * 1000;
  const samples = new Map<string, ShardSample>();
  const startedAtMs = performance.now();
  let kvReadAtMs: number | undefined;

  const dueMs = ({ age, seconds }: SampleTime) =>
    Math.max(everyMs, (seconds / SHARE_MAX) * 1000) - age * 1000;
  const isDue = (last: SampleTime | undefined) => last === undefined || dueMs(last) <= 0;

  const sampleShard = async (name: string, signal: AbortSignal): Promise<number> => {
    const shard = shards.all.find((it) => it.name === name);
    if (!shard) return everyMs;
    const { pool, sessions } = shard.database;
    const known = samples.get(name)?.takenAt;
    let last = await lastSample(pool, known);
    if (isDue(last)) {
      await takeSample(
        { control: shard.planes.control, data: sessions },
        {
          isDue,
          timeoutMs: config.query_timeout * 1000,
          countsMax: config.metrics.max_label_sets,
          read: name === DEFAULT_SHARD ? options.replicas?.read : undefined,
          signal,
        },
      );
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

  const readKv = async (): Promise<number> => {
    try {
      const loads = await Promise.all(
        QUEUES.map(async ([queue, series]) => {
          const queues = shards.all.map(({ name }) => kv.queue(queueOf(queue, name)).load());
          const all = await Promise.all(queues);
          const sum = (state: keyof QueueLoad) => all.reduce((n, load) => n + load[state], 0);
          return { series, waiting: sum('waiting'), pulled: sum('pulled') };
        }),
      );
      kvReadAtMs = performance.now();
      for (const { series, waiting, pulled } of loads) {
        meter.set(series, { status: 'scheduled' }, waiting);
        meter.set(series, { status: 'processing' }, pulled);
      }
      return everyMs;
    } catch (error) {
      if (kvReadAtMs === undefined && performance.now() - startedAtMs < CONNECT_MS)
        return Math.min(AGAIN_MS, everyMs);
      // Clear the series, because 0 would look like an empty queue.
      for (const [, series] of QUEUES) meter.clear(series);
      throw error;
    }
  };

  const counted = (
    sample: 'postgres' | 'kv',
    sentence: string,
    details: (error: unknown) => object,
  ) => {
    // Create the series at 0, so that the first failure shows up as an increase.
    meter.add('gateway_metrics_sample_failures_total', { sample }, 0);
    return {
      retryMs: everyMs,
      failed(error: unknown, isFirst: boolean) {
        meter.add('gateway_metrics_sample_failures_total', { sample });
        if (isFirst) log.warn({ sample, ...details(error) }, sentence);
      },
      recovered: () => log.info({ sample }, 'The queue series are current again.'),
    };
  };
  const ofPostgres = counted(
    'postgres',
    `Could not sample the queues in Postgres; their series keep their values. A sample that takes longer than query_timeout (${config.query_timeout} s, GATEWAY_METRICS_QUERY_TIMEOUT) is given up.`,
    (error) => ({ error }),
  );
  const ofKv = counted(
    'kv',
    'Could not sample the queues in KV; their series are hidden until it answers.',
    (error) => ({ reason: kvReason(error, config.kv) }),
  );

  // Each shard has a loop of its own: one that hangs delays no other.
  const stops = new Map<string, () => Promise<void>>();
  const follow = () => {
    const names = shards.all.map(({ name }) => name);
    for (const [name, stop] of stops)
      if (!names.includes(name)) {
        stops.delete(name);
        samples.delete(name);
        void stop();
      }
    for (const name of names.filter((it) => !stops.has(it)))
      stops.set(
        name,
        repeat((signal) => sampleShard(name, signal), ofPostgres),
      );
  };
  follow();
  const following = setInterval(follow, everyMs).unref();
  const stopKv = repeat(readKv, ofKv);
  const stopAges = meter.collect(() => {
    const taken = [...samples.values()].map(({ takenAtMs }) => takenAtMs);
    const times = { postgres: taken.length > 0 ? Math.min(...taken) : undefined, kv: kvReadAtMs };
    for (const [sample, atMs] of Object.entries(times))
      if (atMs !== undefined) {
        const age = (performance.now() - atMs) / 1000;
        meter.set('gateway_metrics_sample_age_seconds', { sample }, age);
      }
  });
  return async () => {
    clearInterval(following);
    stopAges();
    await Promise.all([stopKv, ...stops.values()].map((stop) => stop()));
  };
}

/** Joins the samples of shards. Counts with equal labels, as of a moved project, are added. */
export function mergeSamples(samples: readonly QueueSample[]): QueueSample {
  const [first, ...others] = samples;
  if (others.length === 0) return first!;
  const hidden = (list: keyof QueueSample['hidden']) =>
    samples.reduce((sum, it) => sum + (it.hidden[list] ?? 0), 0);
  return {
    events: addUp(samples.flatMap(({ events }) => events)),
    deliveries: addUp(samples.flatMap(({ deliveries }) => deliveries)),
    attempts: addUp(samples.flatMap(({ attempts }) => attempts)),
    parked: addUp(samples.flatMap(({ parked = [] }) => parked)),
    hidden: {
      events: hidden('events'),
      deliveries: hidden('deliveries'),
      attempts: hidden('attempts'),
      parked: hidden('parked'),
    },
    projects: Object.assign(
      {},
      ...samples.map(({ projects }) => projects),
    ) as QueueSample['projects'],
  };
}
