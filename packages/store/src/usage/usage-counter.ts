import pg from 'pg';
import type { Log } from '@gateway/core/logging';
import { repeat } from '@gateway/core/process';
import { withConnection } from '../postgres/advisory-lock.js';
import { addUsage, type ProjectUsage } from './usage.js';

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
  pool: pg.Pool;
  log: Log;
  flushMs?: number;
}): UsageCounter {
  /**
   * By day since the epoch and by project. Nested, because building a string key per event is too
   * slow.
   */
  let days = new Map<number, Map<string, Counts>>();
  let failing = false;
  let flushing: Promise<void> | undefined;

  const countsOf = (projectId: string, day = Math.floor(Date.now() / DAY_MS)): Counts => {
    let projects = days.get(day);
    if (!projects) days.set(day, (projects = new Map<string, Counts>()));
    let counts = projects.get(projectId);
    if (!counts) {
      counts = {
        projectId,
        day: new Date(day * DAY_MS).toISOString().slice(0, 10),
        events: 0,
        deliveries: 0,
        bytes: 0,
      };
      projects.set(projectId, counts);
    }
    return counts;
  };

  const restore = (taken: typeof days): void => {
    for (const [day, projects] of taken) {
      for (const [projectId, { events, deliveries, bytes }] of projects) {
        const counts = countsOf(projectId, day);
        counts.events += events;
        counts.deliveries += deliveries;
        counts.bytes += bytes;
      }
    }
  };

  const write = async (): Promise<void> => {
    if (days.size === 0) return;
    const taken = days;
    days = new Map();
    let isSent = false;
    try {
      await withConnection(pool, (client) => {
        isSent = true;
        return addUsage(
          client,
          [...taken.values()].flatMap((projects) => [...projects.values()]),
        );
      });
      failing = false;
    } catch (error) {
      // Without a response from Postgres, the counts may have been written; writing them again
      // could count them twice.
      if (isSent && !(error instanceof pg.DatabaseError)) {
        log.warn(
          { error },
          'Connection lost while writing usage: the last seconds may not be counted.',
        );
        return;
      }
      restore(taken);
      if (!failing)
        log.warn(
          { error },
          'Could not write usage to the database; keeping it in memory until the next flush.',
        );
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
