import type { Config, Log } from '@gateway/core';
import { forgetOld, keepUp, type Database } from '@gateway/store';

const EVERY_MS = 3_600_000;

/**
 * Keeps the tables in shape, now and every hour: makes the partitions of the coming days, and forgets what is older than `retention.days` when
 * `retention.enabled` says so. Resolves when there are partitions to write to; the rest goes on beside.
 *
 * @returns what stops it, at the end of the statement that is under way
 * @throws when the partitions cannot be made now; later that is a warning
 */
export async function startUpkeep({
  config,
  database: { pool },
  log,
}: {
  config: Config;
  database: Database;
  log: Log;
}): Promise<() => Promise<void>> {
  const { enabled, days } = config.retention;
  const stop = new AbortController();
  const retain = enabled ? retainer({ pool, days, log, signal: stop.signal }) : () => Promise.resolve();
  await keepUp(pool);
  let running = retain();
  const timer = setInterval(() => {
    running = running
      .then(() => keepUp(pool))
      .then(
        () => undefined,
        (error: unknown) => log.warn({ error }, 'Partitions of the coming days could not be made.'),
      )
      .then(retain);
  }, EVERY_MS);
  return async () => {
    clearInterval(timer);
    stop.abort();
    await running;
  };
}

/** Forgets what is old, and tells what it did; never rejects. */
function retainer({
  pool,
  days,
  log,
  signal,
}: {
  pool: Database['pool'];
  days: number;
  log: Log;
  signal: AbortSignal;
}): () => Promise<void> {
  const told = new Set<string>();
  return async () => {
    try {
      const { dropped, unfinished, locked, rowsDeleted } = await forgetOld(pool, { days, signal });
      for (const { day, events, eventDeliveries, deliveryAttempts } of dropped) {
        const rows = { events, event_deliveries: eventDeliveries, delivery_attempts: deliveryAttempts };
        log.info({ day, ...rows }, `A day of events is older than retention.days (${days}) and was dropped; the counts are estimates.`);
      }
      if (rowsDeleted > 0) log.info({ rows: rowsDeleted }, `Finished rows older than retention.days (${days}) were deleted.`);
      if (locked) log.info({}, 'A table of events is locked for long, as by a backup; old days are dropped an hour later.');
      for (const day of unfinished) {
        if (!told.has(day))
          log.info({ day }, `A day older than retention.days (${days}) is kept: it has events or deliveries that are not finished.`);
        told.add(day);
      }
    } catch (error) {
      log.warn({ error }, 'What is older than retention.days could not be dropped; the next try is in an hour.');
    }
  };
}
