import type { Log } from '@gateway/core/logging';
import { repeat, withTimeout } from '@gateway/core/process';
import type { EventCreator } from '@gateway/ingest/commit/event-creator';
import { claimScheduled, deleteScheduled } from '@gateway/store/config';
import type { Database } from '@gateway/store/postgres';

/** An event may be this much late. */
const LOOK_MS = 1_000;
const TIMEOUT_MS = 10_000;

/**
 * Makes events of scheduled ones that are due, until the returned function is called. Their ids are
 * known beforehand: those that another agent made before it died are duplicates.
 */
export function startScheduledEvents({
  database: { pool },
  events,
  shards,
  log,
}: {
  readonly database: Pick<Database, 'pool'>;
  readonly events: Pick<EventCreator, 'accept'>;
  /** The shards that this agent works on, where it can create events. */
  readonly shards: () => readonly string[];
  readonly log: Log;
}): () => Promise<void> {
  const run = async () => {
    const names = shards();
    if (names.length === 0) return LOOK_MS;
    const { events: due, isFull } = await claimScheduled(pool, names);
    const outcomes = await Promise.allSettled(
      due.map(({ id, deliverAt: _, ...event }) =>
        withTimeout(events.accept({ ...event, headers: { ...event.headers } }, id), TIMEOUT_MS),
      ),
    );
    const made = due.filter((_, index) => outcomes[index]!.status === 'fulfilled');
    if (made.length > 0) await deleteScheduled(pool, made);
    const failed = outcomes.find((it) => it.status === 'rejected');
    if (failed) throw failed.reason;
    return isFull ? 1 : LOOK_MS;
  };
  return repeat(run, {
    retryMs: LOOK_MS,
    failed: (error, isFirst) =>
      isFirst &&
      log.warn(
        { error },
        'Could not create scheduled events that are due; each is tried again after a minute.',
      ),
  });
}
