import type { Config } from '@gateway/core/config';
import type { Log } from '@gateway/core/logging';
import { Sandbox } from '@gateway/sandbox';
import { eventOfKey, type NewEvent } from '@gateway/store/events';
import { rejectsContent, type Database } from '@gateway/store/postgres';
import {
  dropReplayedMessage,
  rejectReplayedMessage,
  replayQuarantinedMessage,
  type QuarantinedMessage,
  type ReplayableMessage,
} from '@gateway/store/quarantine';
import type { ReadyEvent } from '../commit/event-writer.js';
import { decide } from './dry-run.js';
import { sandboxLimits } from '../ingest/sandbox-limits.js';
import { Transformer } from '../ingest/transformer.js';

/** What would become of a message now. */
export type Verdict =
  | { readonly kind: 'accepted'; readonly events: readonly ReadyEvent[] }
  | { readonly kind: 'dropped' }
  | { readonly kind: 'refused'; readonly refusal: StoredRefusal };

/** A refusal as it stands in the row: its code may be of another version of the gateway. */
export type StoredRefusal = Pick<QuarantinedMessage, 'code' | 'reason'>;

/** What became of a message that was sent on its way again. */
export type Replayed =
  /** Its events are committed as pending. `ids` are those that are new. */
  | { readonly kind: 'replayed'; readonly ids: readonly string[] }
  /** Nothing is new; `ids` are the events that were there already. */
  | { readonly kind: 'duplicate'; readonly ids: readonly string[] }
  | Exclude<Verdict, { kind: 'accepted' }>
  /** Somebody replayed, discarded or edited it meanwhile; nothing was done. */
  | { readonly kind: 'changed' };

/** What a message that is dropped by its function on replay has for a reason. */
export const DROPPED_REASON = 'The transform function dropped the message when it was replayed.';

/** Tells what would become of a message; changes nothing. */
export interface Judge {
  /** Transforms with the function of the source and validates. Rejects with a SandboxError when functions cannot be run here. */
  judge(message: ReplayableMessage): Promise<Verdict>;
  /** Ends the sandbox. */
  close(): Promise<void>;
}

/** Sends quarantined messages the way of a message again. */
export interface Replayer extends Judge {
  /**
   * Transforms, validates and commits: the events and the new status of the message, all or nothing. The coordinates and the time of the message are
   * those it came with, so its events have the ids that they would have had then.
   */
  replay(message: ReplayableMessage): Promise<Replayed>;
}

interface ReplayOptions {
  readonly config: Pick<Config, 'ingest' | 'transform'>;
  readonly log: Log;
}

/** A judge with the limits and the sandbox of an agent. Many messages may be judged at once: their transforms then go in batches. */
export function openJudge({ config, log }: ReplayOptions): Judge {
  const sandbox = new Sandbox(sandboxLimits(config));
  const transformer = new Transformer({ sandbox, log });
  const { max_message_bytes: maxMessageBytes } = config.ingest;
  let works: Promise<unknown> | undefined;

  return {
    async judge(message) {
      const source = {
        projectId: message.projectId,
        id: message.sourceId,
        bodyFunction: message.bodyFunction?.trim() ? message.bodyFunction : null,
      };
      // An agent waits for a sandbox that cannot start; whoever stands before a terminal is told.
      if (source.bodyFunction !== null) await (works ??= sandbox.check({ key: 'works', text: 'function transform() {}' }));
      const { coordinates, occurredAtMs: timestamp, body, headers } = message;
      const ready = await decide(source, { coordinates, timestamp, body, headers }, { transformer, maxMessageBytes });
      if (ready === 'dropped') return { kind: 'dropped' };
      return ready.quarantined ? { kind: 'refused', refusal: refusalOf(ready.quarantined) } : { kind: 'accepted', events: ready.events };
    },
    async close() {
      transformer.stop();
      await sandbox.close();
    },
  };
}

/** A replayer that commits to this database. The events are pending: the caller signals them, or an agent finds them a few seconds later. */
export function openReplayer({ database, ...options }: ReplayOptions & { readonly database: Pick<Database, 'pool'> }): Replayer {
  const { judge, close } = openJudge(options);
  const { idempotency_window_seconds: idempotencyWindowSeconds } = options.config.ingest;
  const { pool } = database;

  async function commit(message: ReplayableMessage, events: readonly ReadyEvent[]): Promise<Replayed> {
    const pending = pendingEvents(events);
    const accepted = await replayQuarantinedMessage(pool, message, { events: pending, idempotencyWindowSeconds });
    if (accepted === undefined) return { kind: 'changed' };
    const ids = pending.map(({ id }) => id).filter((id) => accepted === 'all' || accepted.has(id));
    if (ids.length > 0) return { kind: 'replayed', ids };
    return { kind: 'duplicate', ids: await Promise.all(events.map((event) => knownAs(pool, event))) };
  }

  async function refuse(message: ReplayableMessage, refusal: StoredRefusal): Promise<Replayed> {
    return (await rejectReplayedMessage(pool, message, refusal)) ? { kind: 'refused', refusal } : { kind: 'changed' };
  }

  return {
    judge,
    close,
    async replay(message) {
      const verdict = await judge(message);
      switch (verdict.kind) {
        case 'refused':
          return refuse(message, verdict.refusal);
        case 'dropped':
          return (await dropReplayedMessage(pool, message, DROPPED_REASON)) ? verdict : { kind: 'changed' };
        case 'accepted':
          try {
            return await commit(message, verdict.events);
          } catch (error) {
            if (!rejectsContent(error)) throw error;
            return refuse(message, {
              code: 'database_refused',
              reason: `Postgres refused the event as it is: ${(error as Error).message}.`,
            });
          }
      }
    },
  };
}

function refusalOf({ code, reason }: QuarantinedMessage): StoredRefusal {
  return { code, reason };
}

/** As the commit wants them: pending, in the order of their ids, and of two with one idempotency key the first. */
function pendingEvents(events: readonly ReadyEvent[]): NewEvent[] {
  const keys = new Set<string>();
  const first = events.filter(({ idempotencyKey: key }) => key === null || (!keys.has(key) && keys.add(key)));
  return first
    .map((event): NewEvent => ({ ...event, headers: JSON.stringify(event.headers), status: 'pending', outcome: null }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** The event that made this one a duplicate: the holder of its idempotency key, else the event of the same message. */
async function knownAs(pool: Database['pool'], { projectId, id, idempotencyKey: key }: ReadyEvent): Promise<string> {
  return (key === null ? undefined : await eventOfKey(pool, projectId, key)) ?? id;
}
