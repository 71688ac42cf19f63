import type { Config } from '@gateway/core/config';
import { kvReason } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import type { Database } from '../postgres/database.js';
import { lastSample, takeSample, type SampleTime } from './stored-sample.js';
import type { Kv, QueueName } from '../kv/kv.js';
import { repeat } from './repeat.js';
import { exportSample } from './export-sample.js';

export interface SamplerOptions {
  readonly config: Pick<Config, 'query_timeout' | 'kv' | 'metrics'>;
  readonly plugins: Pick<ActivatedPlugins, 'meter' | 'metrics'>;
  readonly database: Pick<Database, 'pool'>;
  readonly kv: Kv;
  readonly log: Log;
}

/** Of the sample time, by chance: processes that ask at once would all begin a sample, and all but one for nothing. */
const JITTER = 0.1;
/** Samples take this share of the time at most: with millions of deliveries that are not over, one takes seconds. */
const SHARE_MAX = 0.1;

/**
 * Shows the queue series: those of Postgres from a sample that one process of the instance takes for all, those of KV as they are. Does nothing without a
 * metrics backend. What fails is tried again at the next sample time.
 *
 * @returns what stops it; a sample that is under way is broken off
 */
export function startSampler(options: SamplerOptions): () => Promise<void> {
  const { plugins, config, log } = options;
  if (!plugins.metrics) return () => Promise.resolve();
  const { meter } = plugins;
  // There from the beginning, or the first failure would be no increase.
  for (const sample of ['postgres', 'kv']) meter.add('gateway_metrics_sample_failures_total', { sample }, 0);
  const everyMs = plugins.metrics.sampleTimeSeconds * 1000;
  const postgres = relational(options, everyMs);
  const queues = keyValue(options, everyMs);
  const start = (sample: string, { tick }: Sampled, sentence: string, told: (error: unknown) => object) =>
    repeat(tick, {
      retryMs: everyMs,
      failed(error, isFirst) {
        meter.add('gateway_metrics_sample_failures_total', { sample });
        if (isFirst) log.warn({ sample, ...told(error) }, sentence);
      },
      recovered: () => log.info({ sample }, 'The queue series are up to date again.'),
    });
  const stops = [
    start(
      'postgres',
      postgres,
      `The queue series of Postgres stay as they are until a sample can be taken; one that takes longer than query_timeout (${config.query_timeout} s, GATEWAY_METRICS_QUERY_TIMEOUT) is given up.`,
      (error) => ({ error }),
    ),
    start('kv', queues, 'The queue series of KV are not shown until it answers.', (error) => ({ reason: kvReason(error, config.kv) })),
  ];
  const forget = meter.collect(() => {
    for (const [sample, { ageSeconds }] of [['postgres', postgres] as const, ['kv', queues] as const]) {
      const age = ageSeconds();
      if (age !== undefined) meter.set('gateway_metrics_sample_age_seconds', { sample }, age);
    }
  });
  return async () => {
    forget();
    await Promise.all(stops.map((stop) => stop()));
  };
}

/** What is sampled from one place. */
interface Sampled {
  /** Looks, and returns in how many milliseconds it wants to look again. */
  tick(signal: AbortSignal): Promise<number>;
  /** How old is what is shown; undefined before the first. */
  ageSeconds(): number | undefined;
}

function relational({ database: { pool }, plugins: { meter }, config }: SamplerOptions, everyMs: number): Sampled {
  let known: string | undefined;
  let takenAtMs: number | undefined;
  const dueMs = ({ age, seconds }: SampleTime) => Math.max(everyMs, (seconds / SHARE_MAX) * 1000) - age * 1000;
  const isDue = (last: SampleTime | undefined) => last === undefined || dueMs(last) <= 0;
  return {
    async tick(signal) {
      let last = await lastSample(pool, known);
      if (isDue(last)) {
        await takeSample(pool, { isDue, timeoutMs: config.query_timeout * 1000, countsMax: config.metrics.max_label_sets, signal });
        last = await lastSample(pool, known);
      }
      if (last === undefined) return AGAIN_MS;
      if (last.sample) {
        known = last.takenAt;
        takenAtMs = performance.now() - last.age * 1000;
        await exportSample(meter, last.sample);
        meter.set('gateway_metrics_sample_seconds', {}, last.seconds);
      }
      // Still due: another process is at it.
      return isDue(last) ? AGAIN_MS : dueMs(last) + everyMs * JITTER * Math.random();
    },
    ageSeconds: () => takenAtMs && (performance.now() - takenAtMs) / 1000,
  };
}

/** How soon a sample is asked for that another process is taking, or KV while it is not connected yet. */
const AGAIN_MS = 200;
/** How long KV may take to be connected after the start. */
const CONNECT_MS = 3_000;

const QUEUES = {
  'create-event': 'gateway_event_queue_scheduled_total',
  'match-subscriptions': 'gateway_event_workflow_queue_match_subscriptions_total',
} as const satisfies Readonly<Record<QueueName, string>>;

function keyValue({ kv, plugins: { meter } }: SamplerOptions, everyMs: number): Sampled {
  const names = Object.keys(QUEUES) as QueueName[];
  let takenAtMs: number | undefined;
  const startedAtMs = performance.now();
  return {
    async tick() {
      try {
        const loads = await Promise.all(names.map((name) => kv.queue(name).load()));
        takenAtMs = performance.now();
        for (const [k, { waiting, pulled }] of loads.entries()) {
          const series = QUEUES[names[k]!];
          meter.set(series, { status: 'scheduled' }, waiting);
          meter.set(series, { status: 'processing' }, pulled);
        }
        return everyMs;
      } catch (error) {
        if (takenAtMs === undefined && performance.now() - startedAtMs < CONNECT_MS) return Math.min(AGAIN_MS, everyMs);
        // Not a zero, which would look like a queue that is empty.
        for (const name of names) meter.clear(QUEUES[name]);
        throw error;
      }
    },
    ageSeconds: () => takenAtMs && (performance.now() - takenAtMs) / 1000,
  };
}
