import pg from 'pg';
import type { Log } from '@gateway/core/logging';
import { addUsage, type ProjectUsage } from './usage.js';

/** Counts usage in memory and adds it to the database from time to time. */
export interface UsageCounter {
  /** An event was accepted now. */
  event(projectId: string, data: string): void;
  /** An event delivery ended in success now. */
  delivery(projectId: string): void;
  /** Adds what has been counted. Does not reject: what could not be added is added with the next flush. */
  flush(): Promise<void>;
  /** Stops and flushes a last time. */
  close(): Promise<void>;
}

type Counts = { -readonly [Key in 'events' | 'deliveries' | 'bytes']: number };

/** By day (in days since the epoch) and project. */
type Days = Map<number, Map<string, Counts>>;

const FLUSH_MS = 10_000;
const DAY_MS = 86_400_000;

/**
 * The way of a message only counts: one statement each few seconds writes. Nothing is counted twice. A process that is killed loses what it has counted since its
 * last flush, and so does one whose connection breaks while Postgres answers, because it cannot know whether that was added.
 */
export function startUsageCounter({ pool, log, flushMs = FLUSH_MS }: { pool: pg.Pool; log: Log; flushMs?: number }): UsageCounter {
  let days: Days = new Map();
  let failing = false;
  let flushing: Promise<void> | undefined;

  const countsOf = (projectId: string): Counts => {
    const day = Math.floor(Date.now() / DAY_MS);
    let projects = days.get(day);
    if (!projects) days.set(day, (projects = new Map<string, Counts>()));
    let counts = projects.get(projectId);
    if (!counts) projects.set(projectId, (counts = { events: 0, deliveries: 0, bytes: 0 }));
    return counts;
  };

  const restore = (taken: Days): void => {
    const since = days;
    days = taken;
    for (const [day, projects] of since) {
      const known = days.get(day);
      if (!known) days.set(day, projects);
      else for (const [projectId, counts] of projects) known.set(projectId, sum(known.get(projectId), counts));
    }
  };

  const keep = (taken: Days, error: unknown): void => {
    restore(taken);
    if (!failing) log.warn({ error }, 'Usage could not be added to the database; it is kept in memory and added later.');
    failing = true;
  };

  const write = async (): Promise<void> => {
    if (days.size === 0) return;
    const taken = days;
    days = new Map();
    let client: pg.PoolClient;
    try {
      client = await pool.connect();
    } catch (error) {
      keep(taken, error);
      return;
    }
    // A connection that breaks fails its query; without a listener it would end the process as well.
    const broken = () => undefined;
    client.on('error', broken);
    let lost: Error | undefined;
    try {
      await addUsage(client, rowsOf(taken));
      failing = false;
    } catch (error) {
      // Postgres has answered that nothing was written; without an answer it may have been.
      if (error instanceof pg.DatabaseError) keep(taken, error);
      else {
        lost = error as Error;
        log.warn({ error }, 'The connection broke while usage was added to the database: that of the last seconds may be missing.');
      }
    } finally {
      client.off('error', broken);
      client.release(lost);
    }
  };

  const flush = (): Promise<void> => (flushing ??= write().finally(() => (flushing = undefined)));
  const timer = setInterval(() => void flush(), flushMs).unref();
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
      clearInterval(timer);
      await flushing;
      await flush();
    },
  };
}

function sum(a: Counts | undefined, b: Counts): Counts {
  return a ? { events: a.events + b.events, deliveries: a.deliveries + b.deliveries, bytes: a.bytes + b.bytes } : b;
}

function rowsOf(days: ReadonlyMap<number, ReadonlyMap<string, Counts>>): ProjectUsage[] {
  return [...days].flatMap(([day, projects]) => {
    const date = new Date(day * DAY_MS).toISOString().slice(0, 10);
    return [...projects].map(([projectId, counts]) => ({ projectId, day: date, ...counts }));
  });
}
