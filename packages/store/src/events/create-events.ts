import type pg from 'pg';
import { newId, timeOfId } from '@gateway/core/events';
import { rejectsContent } from '../postgres/sqlstate.js';
import type { EventRef } from './event-ref.js';
import { acceptEvents, type NewEvent } from './events.js';
import type { KeptMessage, MessageOfEvents } from './kept-messages.js';

/** An event created over the API, to be routed by an agent. `data` is stored and sent as it is. */
export type CreatedEvent = Pick<
  NewEvent,
  'projectId' | 'eventType' | 'messageType' | 'endpointId' | 'ownerId' | 'idempotencyKey' | 'data'
> & { readonly headers: Readonly<Record<string, string>> };

/** What became of an event: its id, or that of the event that holds its idempotency key; or which of its targets the project does not have. */
export type Creation = { readonly id: string; readonly duplicate: boolean } | { readonly unknown: 'endpoint' | 'owner' };

/** Creates events of many requests together. */
export interface EventCreator {
  /**
   * Commits events of one message of a source, as `create` does: all of them or none. Their endpoints and owners are not looked up: routing tells of unknown ones.
   *
   * @param message is kept with those that are created
   */
  createAll(events: readonly NewEvent[], message?: KeptMessage | null): Promise<readonly Creation[]>;
  /** Resolves after the commit. Rejects with the error of Postgres: nothing of the event was stored, or with a broken connection that is unknown. */
  create(event: CreatedEvent): Promise<Creation>;
}

interface EventCreatorOptions {
  readonly pool: pg.Pool;
  /** How long an idempotency key is held. */
  readonly windowSeconds: number;
  /** Gets the events of each commit, for the create-event queue. */
  readonly committed: (events: readonly EventRef[]) => void;
}

/** A commit with its round trip is waited for by the next one; with a second at a time Postgres does not idle meanwhile. */
const COMMITS = 2;
const BATCH = 500;
const BATCH_CHARACTERS = 4 * 1024 * 1024;

interface Waiting {
  readonly rows: readonly NewEvent[];
  readonly message: KeptMessage | null;
  readonly size: number;
  readonly resolve: (creations: readonly Creation[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Commits what arrives while commits are under way in one commit after them: up to 500 events, or 4 MB and one event. */
export function eventCreator({ pool, windowSeconds, committed }: EventCreatorOptions): EventCreator {
  let waiting: Waiting[] = [];
  let running = 0;

  const next = () => {
    if (running >= COMMITS || waiting.length === 0) return;
    let count = 0;
    for (let [size, events] = [0, 0]; count < waiting.length && events < BATCH && size < BATCH_CHARACTERS; count++) {
      size += waiting[count]!.size;
      events += waiting[count]!.rows.length;
    }
    const batch = waiting.slice(0, count);
    waiting = waiting.slice(count);
    running++;
    void commit(batch).finally(() => {
      running--;
      next();
    });
  };

  const commit = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const creations = await createEvents(
        pool,
        batch.flatMap(({ rows }) => rows),
        batch.flatMap(({ message, rows }) => (message ? [{ message, eventIds: rows.map(({ id }) => id) }] : [])),
        windowSeconds,
      );
      const made: EventRef[] = [];
      let at = 0;
      for (const { rows, resolve } of batch) {
        const own = creations.slice(at, (at += rows.length));
        made.push(...rows.filter((_, k) => isNew(own[k]!)));
        resolve(own);
      }
      if (made.length > 0) committed(made);
    } catch (error) {
      // Postgres rejects the values of one of them: the others are stored all the same.
      const half = batch.length >> 1;
      if (half > 0 && rejectsContent(error)) await Promise.all([commit(batch.slice(0, half)), commit(batch.slice(half))]);
      else for (const { reject } of batch) reject(error);
    }
  };

  const createAll: EventCreator['createAll'] = (rows, message = null) =>
    new Promise((resolve, reject) => {
      const size = rows.reduce((sum, { data }) => sum + data.length, message?.raw?.byteLength ?? 0);
      waiting.push({ rows, message, size, resolve, reject });
      // What arrives in the same turn of the event loop is committed together.
      if (waiting.length === 1 && running < COMMITS) setImmediate(next);
    });
  return { createAll, create: async (event) => (await createAll([rowOf(event)]))[0]! };
}

function isNew(creation: Creation): boolean {
  return 'id' in creation && !creation.duplicate;
}

function rowOf({ headers, ...plain }: CreatedEvent): NewEvent {
  const id = newId();
  // On Node 20 each member that follows a spread takes half a microsecond.
  return {
    id,
    occurredAtMs: timeOfId(id),
    sourceId: null,
    coordinates: 'api',
    digest: null,
    status: 'pending',
    outcome: null,
    headers: JSON.stringify(headers),
    notes: null,
    ...plain,
  };
}

/**
 * Commits events as pending, all or nothing, in the order of their ids. Of events with one idempotency key the first is created, the others are duplicates of it.
 * Cost: one statement, one more if an event names an endpoint or an owner, and one if a key was taken.
 */
async function createEvents(
  pool: pg.Pool,
  rows: readonly NewEvent[],
  messages: readonly MessageOfEvents[],
  windowSeconds: number,
): Promise<Creation[]> {
  const isMissing = await missingTargets(pool, rows);
  const creations = rows.map((row): Creation | undefined => isMissing(row));
  const keyOf = ({ projectId, idempotencyKey: key }: NewEvent) => (key === null ? undefined : `${projectId} ${key}`);
  let left = rows.map((row, k) => ({ row, k })).filter(({ k }) => creations[k] === undefined);
  while (left.length > 0) {
    const firsts = new Map(left.map(({ row }) => [keyOf(row) ?? row.id, row]).reverse() as [string, NewEvent][]);
    const events = [...firsts.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
    const accepted = await acceptEvents(pool, { events, messages, deliveries: [], agentId: 0, idempotencyWindowSeconds: windowSeconds });
    const idOfKey = new Map<string, string>();
    const taken: NewEvent[] = [];
    for (const row of events) {
      const key = keyOf(row);
      if (accepted !== 'all' && !accepted.has(row.id)) taken.push(row);
      else if (key !== undefined) idOfKey.set(key, row.id);
    }
    for (const [key, id] of await eventsOfKeys(pool, taken)) idOfKey.set(key, id);
    for (const { row, k } of left) {
      const key = keyOf(row);
      const id = key === undefined ? row.id : idOfKey.get(key);
      if (id !== undefined) creations[k] = { id, duplicate: id !== row.id };
    }
    // Otherwise a key expired between two statements: its events are tried again.
    left = left.filter(({ k }) => creations[k] === undefined);
  }
  return creations as Creation[];
}

/** Finds the endpoints and owners that events name and their projects do not have, by the indexes of endpoints. */
async function missingTargets(pool: pg.Pool, rows: readonly NewEvent[]): Promise<(row: NewEvent) => Creation | undefined> {
  const targeted = rows.filter(({ sourceId, endpointId, ownerId }) => sourceId === null && (endpointId !== null || ownerId !== null));
  if (targeted.length === 0) return () => undefined;
  const nameOf = ({ projectId, endpointId, ownerId }: NewEvent) => `${projectId} ${endpointId ?? ''} ${ownerId ?? ''}`;
  const distinct = [...new Map(targeted.map((row) => [nameOf(row), row])).values()];
  const { rows: found } = await pool.query<{ n: number }>({
    name: 'find-targets',
    text: `select n::int from unnest($1::uuid[], $2::uuid[], $3::text[]) with ordinality t(project, endpoint, owner, n)
           where case when endpoint is not null
             then exists (select from endpoints e where e.project_id = project and e.id = endpoint and e.deleted_at is null)
             else exists (select from endpoints e where e.project_id = project and e.owner_id = owner and e.deleted_at is null) end`,
    values: [
      distinct.map(({ projectId }) => projectId),
      distinct.map(({ endpointId }) => endpointId),
      distinct.map(({ ownerId }) => ownerId),
    ],
  });
  const known = new Set(found.map(({ n }) => nameOf(distinct[n - 1]!)));
  return (row) => {
    if (row.sourceId !== null || (row.endpointId === null && row.ownerId === null) || known.has(nameOf(row))) return undefined;
    return { unknown: row.endpointId === null ? 'owner' : 'endpoint' };
  };
}

/** The events that hold the idempotency keys of these, by project and key; without those that have expired. */
async function eventsOfKeys(pool: pg.Pool, rows: readonly NewEvent[]): Promise<[string, string][]> {
  if (rows.length === 0) return [];
  const { rows: found } = await pool.query<{ project_id: string; key: string; event_id: string }>({
    name: 'events-of-keys',
    text: `select k.project_id, k.key, k.event_id from unnest($1::uuid[], $2::text[]) u(project, name)
           join idempotency_keys k on k.project_id = u.project and k.key = u.name where k.expires_at > now()`,
    values: [rows.map(({ projectId }) => projectId), rows.map(({ idempotencyKey }) => idempotencyKey)],
  });
  return found.map(({ project_id, key, event_id }) => [`${project_id} ${key}`, event_id]);
}
