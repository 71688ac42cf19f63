import type { Config } from '@gateway/core/config';
import type { Log } from '@gateway/core/logging';
import type { Meter } from '@gateway/core/metrics/meter';
import { repeat } from '@gateway/core/process';
import { disableFailingEndpoints } from '@gateway/store/deliveries';
import type { Database } from '@gateway/store/postgres';
import { maintainControlPlane, runMaintenance } from '@gateway/store/retention/maintenance';
import { applyRetention } from '@gateway/store/retention/retention';
import { migratedAs, type ShardPlanes } from '@gateway/store/shards';
import { archiveOf } from './archive.js';

const INTERVAL_MS = 3_600_000;

/** Now and every hour, until the returned function is called. */
export function startControlUpkeep(
  { retention: { audit_days: auditDays } }: Pick<Config, 'retention'>,
  { pool, log }: { readonly pool: Database['sessions']; readonly log: Log },
): () => Promise<void> {
  return repeat(() => maintainControlPlane(pool, auditDays).then(() => INTERVAL_MS), {
    retryMs: INTERVAL_MS,
    failed: (error) =>
      log.warn(
        { error },
        'Could not delete old sessions, issues and audit entries; will retry in an hour.',
      ),
  });
}

/**
 * Now and every hour: creates partitions, disables the endpoints of projects that ask for it
 * (`disable_after_days`) and, with `retention.enabled`, deletes old days in the background. Rejects
 * if the first run cannot create partitions. The returned function stops it.
 */
export async function startMaintenance(
  { archive: archiveSettings, retention: { enabled, days } }: Pick<Config, 'archive' | 'retention'>,
  {
    planes,
    log,
    meter,
    isMailing,
  }: {
    planes: ShardPlanes;
    log: Log;
    meter: Meter;
    isMailing: boolean;
  },
): Promise<() => Promise<void>> {
  const stop = new AbortController();
  const { signal } = stop;
  const maintain = async () => {
    const missing = await runMaintenance(planes);
    if (missing.length > 0)
      log.warn(
        { days: missing },
        'These days have no partition yet, so their events go to the default one: a table is locked for long, as by a backup, or that partition holds too many of them. The next try is in an hour.',
      );
  };
  const disable = async () => {
    for (const { project_id, endpoint_id, since, days } of await disableFailingEndpoints(
      planes,
      isMailing,
    ))
      log.warn(
        { project_id, endpoint_id, since, days },
        'An endpoint is disabled: all its delivery attempts have failed for as many days as its project allows.',
      );
  };
  await maintain();
  const logged = new Set<string>();
  const isNew = (day: string) => !logged.has(day) && logged.add(day);
  // The counters start at zero, so that the first increase is visible.
  const counters = ['partitions_dropped', 'rows_deleted', 'failures'] as const;
  for (const name of enabled ? counters : []) meter.add(`gateway_retention_${name}_total`, {}, 0);
  const archive = enabled
    ? archiveOf(archiveSettings, { shard: migratedAs({ name: planes.shard }), log, meter, signal })
    : undefined;
  const retain = async () => {
    try {
      const { dropped, unfinished, kept, locked, rowsDeleted, notArchived } = await applyRetention(
        planes,
        { days, archive, signal },
      );
      if (notArchived) archive?.report(notArchived);
      for (const day of dropped) {
        log.info(
          day,
          `A day of events is older than retention.days (${days}), or than its projects keep, and was dropped; the counts are estimates.`,
        );
      }
      if (rowsDeleted > 0)
        log.info(
          { rows: rowsDeleted },
          `Finished rows older than retention.days (${days}), or than their projects keep, were deleted.`,
        );
      if (locked)
        log.info(
          {},
          'A table of events is locked for long, as by a backup; old days are dropped an hour later.',
        );
      for (const day of unfinished.filter(isNew))
        log.info(
          { day },
          `A day older than retention.days (${days}), or than its projects keep, is kept: it has unfinished events or deliveries.`,
        );
      if (kept.filter(isNew).length > 0)
        log.info(
          { days: kept.length },
          `Days older than retention.days (${days}) are kept: some projects in them keep events for longer.`,
        );
      meter.add('gateway_retention_partitions_dropped_total', {}, dropped.length);
      meter.add('gateway_retention_rows_deleted_total', {}, rowsDeleted);
      if (!signal.aborted)
        meter.set('gateway_retention_last_run_timestamp_seconds', {}, Date.now() / 1000);
    } catch (error) {
      meter.add('gateway_retention_failures_total', {});
      log.warn(
        { error },
        'Could not delete events older than retention.days; will retry in an hour.',
      );
    }
  };
  let creating: Promise<unknown> = Promise.resolve();
  let isRetaining = false;
  let retaining = Promise.resolve();
  const startRetention = () => {
    isRetaining = true;
    retaining = creating
      .then(enabled ? retain : () => undefined)
      .finally(() => (isRetaining = false));
  };
  const startDisabling = () =>
    disable().catch((error: unknown) =>
      log.warn({ error }, 'Could not check for endpoints that only fail; will retry in an hour.'),
    );
  let disabling = startDisabling();
  startRetention();
  const timer = setInterval(() => {
    creating = maintain().catch((error: unknown) =>
      log.warn({ error }, 'Could not create partitions for the coming days.'),
    );
    disabling = startDisabling();
    // Deleting may take hours, so it never delays new partitions, and deletions do not overlap.
    if (!isRetaining) startRetention();
  }, INTERVAL_MS);
  return async () => {
    clearInterval(timer);
    stop.abort();
    await Promise.all([creating, retaining, disabling]);
    archive?.close();
  };
}
