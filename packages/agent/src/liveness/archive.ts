import type { Config } from '@gateway/core/config';
import type { Log } from '@gateway/core/logging';
import type { Meter } from '@gateway/core/metrics/meter';
import { openArchive, type OpenArchive } from '@gateway/store/retention/archive';
import type { Archive, NotArchived } from '@gateway/store/retention/archive-first';

interface AgentArchive extends Archive {
  report(notArchived: NotArchived): void;
  close(): void;
}

/** Opened on first use. Undefined without an archive. */
export function archiveOf(
  { url, give_up_before: giveUpBefore, ...options }: Config['archive'],
  {
    shard,
    log,
    meter,
    signal,
  }: { shard: string | undefined; log: Log; meter: Meter; signal: AbortSignal },
): AgentArchive | undefined {
  if (url === undefined) return undefined;
  let archive: OpenArchive | undefined;
  for (const name of ['events', 'bytes', 'failures', 'lost_days'] as const)
    meter.add(`gateway_archive_${name}_total`, {}, 0);
  return {
    giveUpBefore,
    write: async (day) => {
      archive ??= await openArchive({ url, ...options });
      const onPart = ({ events, bytes }: { events: number; bytes: number }) => {
        meter.add('gateway_archive_events_total', {}, events);
        meter.add('gateway_archive_bytes_total', {}, bytes);
      };
      await archive.write({ ...day, shard }, { onPart, signal });
    },
    report: ({ waiting, lost, error }) => {
      meter.set('gateway_archive_waiting_days', {}, waiting.length);
      meter.add('gateway_archive_lost_days_total', {}, lost.length);
      if (error !== undefined) {
        meter.add('gateway_archive_failures_total', {});
        log.warn(
          { error, days: waiting },
          'Expired days could not be archived and are kept; the next try is in an hour. To delete them without a copy, set archive.give_up_before.',
        );
      }
      for (const { projectId: project_id, day } of lost)
        log.error(
          { project_id, day },
          `A day was deleted without a copy: it could not be archived, and is before archive.give_up_before (${giveUpBefore}).`,
        );
    },
    close: () => archive?.close(),
  };
}
