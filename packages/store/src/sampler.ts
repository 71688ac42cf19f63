import { kvReason, type ActivatedPlugins, type Config, type Log, type Meter } from '@gateway/core';
import type { Database } from './database.js';
import { lastSample, takeSample, type KeptSample } from './kept-sample.js';
import type { Kv, QueueName } from './kv.js';
import { showSample } from './show-sample.js';

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
 * @returns what stops it, at the end of what is under way
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
  const shared = { meter, log };
  const stops = [
    repeat(postgres.tick, {
      ...shared,
      sample: 'postgres',
      sentence: `The queue series of Postgres stay as they are until a sample can be taken; one that takes longer than query_timeout (${config.query_timeout} s, GATEWAY_METRICS_QUERY_TIMEOUT) is given up.`,
      everyMs,
      reasonOf: (error) => ({ error }),
    }),
    repeat(queues.tick, {
      ...shared,
      sample: 'kv',
      sentence: 'The queue series of KV are not shown until it answers.',
      everyMs,
      reasonOf: (error) => ({ reason: kvReason(error, config.kv) }),
    }),
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
  tick(): Promise<number>;
  /** How old is what is shown; undefined before the first. */
  ageSeconds(): number | undefined;
}

function relational({ database: { pool }, plugins: { meter }, config }: SamplerOptions, everyMs: number): Sampled {
  let known: string | undefined;
  let takenAtMs: number | undefined;
  const dueMs = ({ age, seconds }: KeptSample) => Math.max(everyMs, (seconds / SHARE_MAX) * 1000) - age * 1000;
  const isDue = (last: KeptSample | undefined) => last === undefined || dueMs(last) <= 0;
  return {
    async tick() {
      let last = await lastSample(pool, known);
      if (isDue(last)) {
        await takeSample(pool, { known, isDue, timeoutMs: config.query_timeout * 1000, countsMax: config.metrics.max_label_sets });
        last = await lastSample(pool, known);
      }
      if (last === undefined) return AGAIN_MS;
      if (last.sample) {
        known = last.takenAt;
        takenAtMs = performance.now() - last.age * 1000;
        await showSample(meter, last.sample);
        meter.set('gateway_metrics_sample_seconds', {}, last.seconds);
      }
      // Still due: another process is at it.
      return isDue(last) ? AGAIN_MS : dueMs(last) + everyMs * JITTER * Math.random();
    },
    ageSeconds: () => takenAtMs && (performance.now() - takenAtMs) / 1000,
  };
}

/** How soon a sample is asked for that another process is taking. */
const AGAIN_MS = 200;

const QUEUES = {
  'create-event': 'gateway_event_queue_scheduled_total',
  'match-subscriptions': 'gateway_event_workflow_queue_match_subscriptions_total',
} as const satisfies Readonly<Record<QueueName, string>>;

function keyValue({ kv, plugins: { meter } }: SamplerOptions, everyMs: number): Sampled {
  const names = Object.keys(QUEUES) as QueueName[];
  let takenAtMs: number | undefined;
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
        // Not a zero, which would look like a queue that is empty.
        for (const name of names) meter.clear(QUEUES[name]);
        throw error;
      }
    },
    ageSeconds: () => takenAtMs && (performance.now() - takenAtMs) / 1000,
  };
}

/** Calls `tick` for as long as it is not stopped; a failure is counted, and the first of several in a row is told. */
function repeat(
  tick: Sampled['tick'],
  {
    meter,
    log,
    sample,
    sentence,
    everyMs,
    reasonOf,
  }: { meter: Meter; log: Log; sample: string; sentence: string; everyMs: number; reasonOf: (error: unknown) => object },
): () => Promise<void> {
  let isFailing = false;
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;
  const once = async () => {
    let nextMs = everyMs;
    try {
      nextMs = await tick();
      if (isFailing) log.info({ sample }, 'The queue series are up to date again.');
      isFailing = false;
    } catch (error) {
      if (isStopped) return;
      meter.add('gateway_metrics_sample_failures_total', { sample });
      if (!isFailing) log.warn({ sample, ...reasonOf(error) }, sentence);
      isFailing = true;
    }
    if (isStopped) return;
    timer = setTimeout(
      () => {
        working = once();
      },
      Math.max(1, nextMs),
    );
  };
  let working = once();
  return async () => {
    isStopped = true;
    clearTimeout(timer);
    await working;
  };
}
