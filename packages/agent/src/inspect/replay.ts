import { eventId } from '@gateway/core/events';
import { eventTypeCatalogue } from '@gateway/store/config';
import { eventOfKey, type NewEvent, readMessages } from '@gateway/store/events';
import { rejectsContent, type Database } from '@gateway/store/postgres';
import { dropReplayedMessage, rejectReplayedMessage, replayQuarantinedMessage, type ReplayableMessage } from '@gateway/store/quarantine';
import { compare } from '@gateway/ingest/commit/distinguish';
import type { ReadyEvent } from '@gateway/ingest/message/ready-message';
import { unknownEventType } from '@gateway/ingest/message/reject-codes';
import { openDryRunner, type DryRun, type DryRunnerOptions, type StoredRejection } from './dry-run.js';

export type Replayed =
  /** Its events are committed as pending; `ids` are the new ones. */
  | { readonly kind: 'replayed'; readonly ids: readonly string[] }
  /** Nothing is new; `ids` are the existing events. */
  | { readonly kind: 'duplicate'; readonly ids: readonly string[] }
  | Exclude<DryRun, { kind: 'accepted' }>
  /** The message was replayed, discarded or edited meanwhile; nothing was done. */
  | { readonly kind: 'changed' };

const DROPPED_REASON = 'The transform function dropped the message when it was replayed.';

/** A replayer that commits to this database. Its events are pending: the caller signals them, or an agent finds them a few seconds later. */
export function openReplayer({ database: { pool }, ...options }: DryRunnerOptions & { readonly database: Pick<Database, 'pool'> }) {
  const { dryRun: run, close } = openDryRunner(options);
  const catalogue = eventTypeCatalogue(pool);
  const { idempotency_window_seconds: idempotencyWindowSeconds } = options.config.ingest;

  /** Its events under ids of their own where another message has them: whoever replays it has decided that it is another one. */
  async function distinguished(message: ReplayableMessage, events: readonly ReadyEvent[]): Promise<ReadyEvent[]> {
    const { sourceId, coordinates, occurredAtMs, digest } = message;
    const own = events.map((event) => ({ ...event, digest }));
    const stored = await readMessages(pool, own);
    const idOf = (ordinal: number) => eventId(sourceId, coordinates, occurredAtMs, ordinal, digest);
    return own.map((event, ordinal) => (compare(event, stored.get(event.id)) === 'same' ? event : { ...event, id: idOf(ordinal) }));
  }

  async function commit(message: ReplayableMessage, parsed: readonly ReadyEvent[]): Promise<Replayed> {
    const events = await distinguished(message, parsed);
    const pending = pendingEvents(events);
    const accepted = await replayQuarantinedMessage(pool, message, { events: pending, idempotencyWindowSeconds });
    if (accepted === undefined) return { kind: 'changed' };
    const ids = pending.map(({ id }) => id).filter((id) => accepted === 'all' || accepted.has(id));
    if (ids.length > 0) return { kind: 'replayed', ids };
    return { kind: 'duplicate', ids: await Promise.all(events.map((event) => originalOf(pool, event))) };
  }

  async function reject(message: ReplayableMessage, refusal: StoredRejection): Promise<Replayed> {
    return (await rejectReplayedMessage(pool, message, refusal)) ? { kind: 'refused', refusal } : { kind: 'changed' };
  }

  async function dryRun(message: ReplayableMessage): Promise<DryRun> {
    const result = await run(message);
    if (result.kind !== 'accepted') return result;
    const types = result.events.map(({ eventType }) => eventType);
    const unknown = await catalogue.firstUnknown(message.projectId, types);
    return unknown === undefined ? result : { kind: 'refused', refusal: unknownEventType(unknown) };
  }

  return {
    dryRun,
    close,
    /** Commits the events and the new status of the message in one transaction. Coordinates and time are kept, so the events get the same ids. */
    async replay(message: ReplayableMessage): Promise<Replayed> {
      const result = await dryRun(message);
      if (result.kind === 'refused') return reject(message, result.refusal);
      if (result.kind === 'dropped') return (await dropReplayedMessage(pool, message, DROPPED_REASON)) ? result : { kind: 'changed' };
      try {
        return await commit(message, result.events);
      } catch (error) {
        if (!rejectsContent(error)) throw error;
        const reason = `Postgres refused the event as it is: ${(error as Error).message}.`;
        return reject(message, { code: 'database_refused', reason });
      }
    },
  };
}

/** Pending events in the order of their ids; of several with one idempotency key the first. */
function pendingEvents(events: readonly ReadyEvent[]): NewEvent[] {
  const keys = new Set<string>();
  const first = events.filter(({ idempotencyKey: key }) => key === null || (!keys.has(key) && keys.add(key)));
  return first
    .map((event): NewEvent => ({ ...event, headers: JSON.stringify(event.headers), status: 'pending', outcome: null }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** The event that this one duplicates: the holder of its idempotency key, else the event of the same message. */
async function originalOf(pool: Database['pool'], { projectId, id, idempotencyKey: key }: ReadyEvent): Promise<string> {
  return (key === null ? undefined : await eventOfKey(pool, projectId, key)) ?? id;
}
