import type { Log } from '@gateway/core/logging';
import { repeat } from '@gateway/core/process';
import type { Database } from '@gateway/store/postgres';
import { addUsageOnce, type ProjectUsage } from '@gateway/store/counts';

/** Counts in memory and adds to the database every few seconds. */
export interface UsageCounter {
  event(projectId: string, data: string): void;
  delivery(projectId: string): void;
  /** Never rejects: unwritten counts remain for the next flush. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

type Counts = { -readonly [Key in keyof ProjectUsage]: ProjectUsage[Key] };

const FLUSH_MS = 10_000;
const DAY_MS = 86_400_000;

/**
 * Counts nothing twice. If the process is killed, or loses its connection during a flush, counts
 * since the last flush may be lost.
 */
export function startUsageCounter({
  pool,
  log,
  flushMs = FLUSH_MS,
}: {
  pool: Database['pool'];
  log: Log;
  flushMs?: number;
}): UsageCounter {
  /** By day since the epoch and by project: building a string key per event is too slow. */
  let days = new Map<number, Map<string, Counts>>();
  let failing = false;
  let flushing: Promise<void> | undefined;

  const countsOf = (projectId: string, day = Math.floor(Date.now() / DAY_MS)): Counts => {
    let projects = days.get(day);
    if (!projects) days.set(day, (projects = new Map<string, Counts>()));
    let counts = projects.get(projectId);
    if (!counts) {
      const date = new Date(day * DAY_MS).toISOString().slice(0, 10);
      counts = { projectId, day: date, events: 0, deliveries: 0, bytes: 0 };
      projects.set(projectId, counts);
    }
    return counts;
  };

  const write = async (): Promise<void> => {
    if (days.size === 0) return;
    const taken = days;
    days = new Map();
    try {
      const usage = [...taken.values()].flatMap((projects) => [...projects.values()]);
      const error = await addUsageOnce(pool, usage);
      if (error)
        log.warn(
          { error },
          'Lost the connection while writing usage; the last seconds may not be counted.',
        );
      failing = false;
    } catch (error) {
      for (const [day, projects] of taken)
        for (const [projectId, { events, deliveries, bytes }] of projects) {
          const counts = countsOf(projectId, day);
          counts.events += events;
          counts.deliveries += deliveries;
          counts.bytes += bytes;
        }
      if (!failing)
        log.warn({ error }, 'Could not write usage; it stays in memory until the next flush.');
      failing = true;
    }
  };

  const flush = (): Promise<void> => (flushing ??= write().finally(() => (flushing = undefined)));
  const tick = () => flush().then(() => flushMs);
  const stop = repeat(tick, { afterMs: flushMs, retryMs: flushMs, failed: () => undefined });
  return {
    event(projectId, data) {
      const counts = countsOf(projectId);
      counts.events++;
      counts.bytes += Buffer.byteLength(data);
    },
    delivery(projectId) {
      countsOf(projectId).deliveries++;
    },
    flush,
    async close() {
      await stop();
      await flush();
    },
  };
}
