import type { PluginLog } from './source.js';

const LOG_EVERY_MS = 60_000;

/** What a tracer reports about its back end. */
export type Outages = ReturnType<typeof outages>;

/**
 * Logs when a back end goes down or rejects, and when it accepts spans again: one line each, however many requests fail in between, and at most one
 * outage a minute.
 * @param fields of every line: the tracer and where it sends
 */
export function outages(log: PluginLog | undefined, fields: Readonly<Record<string, unknown>>) {
  let [outageLoggedAt, dropsLoggedAt] = [-Infinity, -Infinity];
  let [isOut, lost] = [false, 0];
  return {
    /** A request failed, and so many spans are lost. The first failure of an outage is logged. */
    failed: (reason: string, count = 0): void => {
      lost += count;
      if (isOut || Date.now() - outageLoggedAt < LOG_EVERY_MS) return;
      isOut = true;
      outageLoggedAt = Date.now();
      log?.warn(fields, `Spans do not arrive and are lost; a line follows when they arrive again. ${reason.trim()}`);
    },
    /** So many spans did not fit into a queue. Logged once a minute, and not during an outage. */
    dropped: (count: number): void => {
      lost += count;
      if (isOut || Date.now() - dropsLoggedAt < LOG_EVERY_MS) return;
      dropsLoggedAt = Date.now();
      log?.warn({ ...fields, lost }, 'More spans end than the back end takes, and some are lost.');
      lost = 0;
    },
    /** A request succeeded. Logged when it ends an outage that was logged. */
    worked: (): void => {
      if (!isOut) return;
      log?.info(
        { ...fields, ...(lost > 0 && { lost }), away_seconds: Math.round((Date.now() - outageLoggedAt) / 1000) },
        'Spans arrive again.',
      );
      [isOut, lost] = [false, 0];
    },
  };
}
