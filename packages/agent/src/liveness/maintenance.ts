import type { Config } from '@gateway/core/config';
import type { Log } from '@gateway/core/logging';
import type { Meter } from '@gateway/core/metrics';
import type { Database } from '@gateway/store/postgres';
import { applyRetention, runMaintenance } from '@gateway/store/retention';

const EVERY_MS = 3_600_000;

/**
 * Keeps the tables in shape, now and every hour: makes the partitions of the coming days, and forgets what is older than `retention.days`, or than the
 * days of its project, when `retention.enabled` says so. Resolves when there are partitions to write to; the rest goes on beside.
 *
 * @returns what stops it, at the end of the statement that is under way
 * @throws when the partitions cannot be made now; later that is a warning
 */
export async function startMaintenance({
  config,
  database: { pool },
  log,
  meter,
}: {
  config: Pick<Config, 'retention'>;
  database: Pick<Database, 'pool'>;
  log: Log;
  meter: Meter;
}): Promise<() => Promise<void>> {
  const { enabled, days } = config.retention;
  const stop = new AbortController();
  const retain = enabled ? retainer({ pool, days, log, meter, signal: stop.signal }) : () => Promise.resolve();
  await runMaintenance(pool);
  let making = Promise.resolve();
  let retaining = retain();
  let isRetaining = true;
  const ended = () => void (isRetaining = false);
  void retaining.then(ended);
  const timer = setInterval(() => {
    making = makeDays(pool, log);
    // Deleting may take hours; the coming days do not wait for it, and the next look does.
    if (isRetaining) return;
    isRetaining = true;
    retaining = making.then(retain);
    void retaining.then(ended);
  }, EVERY_MS);
  return async () => {
    clearInterval(timer);
    stop.abort();
    await Promise.all([making, retaining]);
  };
}

/** Never rejects. */
async function makeDays(pool: Database['pool'], log: Log): Promise<void> {
  try {
    await runMaintenance(pool);
  } catch (error) {
    log.warn({ error }, 'Partitions of the coming days could not be made.');
  }
}

/** Forgets what is old, and tells what it did; never rejects. */
function retainer({
  pool,
  days,
  log,
  meter,
  signal,
}: {
  pool: Database['pool'];
  days: number;
  log: Log;
  meter: Meter;
  signal: AbortSignal;
}): () => Promise<void> {
  const told = new Set<string>();
  const isNews = (day: string) => !told.has(day) && told.add(day);
  // There from the beginning, or the first would be no increase.
  for (const name of [
    'gateway_retention_partitions_dropped_total',
    'gateway_retention_rows_deleted_total',
    'gateway_retention_failures_total',
  ] as const)
    meter.add(name, {}, 0);
  return async () => {
    try {
      const { dropped, unfinished, kept, locked, rowsDeleted } = await applyRetention(pool, { days, signal });
      for (const { day, events, eventDeliveries, deliveryAttempts } of dropped) {
        const rows = { events, event_deliveries: eventDeliveries, delivery_attempts: deliveryAttempts };
        log.info(
          { day, ...rows },
          `A day of events is older than retention.days (${days}), or than its projects keep, and was dropped; the counts are estimates.`,
        );
      }
      if (rowsDeleted > 0)
        log.info({ rows: rowsDeleted }, `Finished rows older than retention.days (${days}), or than their projects keep, were deleted.`);
      if (locked) log.info({}, 'A table of events is locked for long, as by a backup; old days are dropped an hour later.');
      for (const day of unfinished.filter(isNews))
        log.info(
          { day },
          `A day older than retention.days (${days}), or than its projects keep, is kept: it has events or deliveries that are not finished.`,
        );
      if (kept.filter(isNews).length > 0)
        log.info(
          { days: kept.length },
          `Days older than retention.days (${days}) are kept: projects that keep events for longer have some in them.`,
        );
      meter.add('gateway_retention_partitions_dropped_total', {}, dropped.length);
      meter.add('gateway_retention_rows_deleted_total', {}, rowsDeleted);
      if (!signal.aborted) meter.set('gateway_retention_last_run_timestamp_seconds', {}, Date.now() / 1000);
    } catch (error) {
      meter.add('gateway_retention_failures_total', {});
      log.warn({ error }, 'What is older than retention.days could not be dropped; the next try is in an hour.');
    }
  };
}
