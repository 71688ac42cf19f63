import type { PluginLog } from './source.js';

/** Where a back end comes and goes, it is told of this often. */
const TELL_EVERY_MS = 60_000;

/** What a tracer tells of its back end. */
export interface Outages {
  /** A request failed, and so many spans are lost with it: the first one of an outage is told of. */
  failed(reason: string, lost?: number): void;
  /** So many spans had no place in a queue: told of once a minute, and not while the back end is away. */
  dropped(count: number): void;
  /** A request was answered well: told of when it ends an outage that was told of. */
  worked(): void;
}

/**
 * Tells the log when a back end goes away or refuses, and when it takes spans again: one line each, however many requests fail between, and one
 * outage a minute at most.
 * @param fields of every line: the tracer and where it sends
 */
export function outages(log: PluginLog | undefined, fields: Readonly<Record<string, unknown>>): Outages {
  let [toldAt, droppedToldAt] = [-Infinity, -Infinity];
  let [told, lost] = [false, 0];
  return {
    failed: (reason, count = 0) => {
      lost += count;
      if (told || Date.now() - toldAt < TELL_EVERY_MS) return;
      told = true;
      toldAt = Date.now();
      log?.warn(fields, `Spans do not arrive and are lost; a line follows when they arrive again. ${reason.trim()}`);
    },
    dropped: (count) => {
      lost += count;
      if (told || Date.now() - droppedToldAt < TELL_EVERY_MS) return;
      droppedToldAt = Date.now();
      log?.warn({ ...fields, lost }, 'More spans end than the back end takes, and some are lost.');
      lost = 0;
    },
    worked: () => {
      if (!told) return;
      log?.info({ ...fields, ...(lost > 0 && { lost }), away_seconds: Math.round((Date.now() - toldAt) / 1000) }, 'Spans arrive again.');
      [told, lost] = [false, 0];
    },
  };
}
