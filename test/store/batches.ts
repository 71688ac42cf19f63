import type { Test } from 'uvu';
import { eventDeliveryId, eventId, newId } from '#core/events/ids';
import type { AttemptRecord } from '#store/deliveries/delivery-attempts';
import {
  acceptEvents,
  type EventBatch,
  type StorableEvent,
  type NewEventDelivery,
} from '#store/events/events';
import type { Database } from '#store/postgres/database';
import type { QuarantinedMessage } from '#store/quarantine/messages';
import { isOnCitus } from '../support/database.js';
import { until } from '../support/until.js';

/** Tables of the data plane do not reference projects, so any id will do. */
export const PROJECT = newId();
export const SOURCE = newId();
export const ENDPOINT = newId();

let last = 0;

/** A unique event. */
export function newEvent(fields: Partial<StorableEvent> = {}): StorableEvent {
  const { occurredAtMs = Date.now(), coordinates = `orders/0/${last++}` } = fields;
  return {
    projectId: PROJECT,
    id: eventId(SOURCE, coordinates, occurredAtMs),
    occurredAtMs,
    sourceId: SOURCE,
    coordinates,
    digest: null,
    eventType: 'order.paid',
    messageType: 'single',
    endpointId: null,
    ownerId: null,
    idempotencyKey: null,
    status: 'processed',
    outcome: 'routed',
    headers: '{}',
    notes: null,
    data: '{"n":1}',
    ...fields,
  };
}

export function pendingEvent(fields: Partial<StorableEvent> = {}): StorableEvent {
  return newEvent({ status: 'pending', outcome: null, ...fields });
}

/** Returns what `acceptEvents` has created. */
export async function accepted(
  ...args: Parameters<typeof acceptEvents>
): Promise<ReadonlySet<string> | 'all'> {
  return (await acceptEvents(...args)).created;
}

/** Unique events, sorted by id as callers of `acceptEvents` do. */
export function newEvents(
  count: number,
  fields: Partial<StorableEvent> | ((n: number) => Partial<StorableEvent>) = {},
): StorableEvent[] {
  return sorted(
    Array.from({ length: count }, (_, n) =>
      newEvent(typeof fields === 'function' ? fields(n) : fields),
    ),
  );
}

export function sorted<Ref extends { readonly id: string }>(refs: readonly Ref[]): Ref[] {
  return [...refs].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** A delivery to an endpoint, held by the batch's agent. */
export function newDelivery(
  event: StorableEvent,
  fields: Partial<NewEventDelivery> = {},
): NewEventDelivery {
  const { endpointId = ENDPOINT, subscriptionId = null } = fields;
  return {
    projectId: event.projectId,
    id: eventDeliveryId(event.id, endpointId, subscriptionId),
    occurredAtMs: event.occurredAtMs,
    eventId: event.id,
    endpointId,
    subscriptionId,
    eventType: event.eventType,
    sourceId: event.sourceId,
    status: 'processing',
    dueInMs: 0,
    reason: null,
    ...fields,
  };
}

export function batch(
  events: readonly StorableEvent[],
  fields: Partial<EventBatch> = {},
): EventBatch {
  return { events, deliveries: [], agentId: 1, idempotencyWindowSeconds: 3600, ...fields };
}

/**
 * Commits pending events, like an agent without capacity.
 * @returns the events, sorted by id
 */
export async function acceptPending(
  db: Pick<Database, 'pool'>,
  count: number,
  fields: Partial<StorableEvent> = {},
): Promise<StorableEvent[]> {
  const events = newEvents(count, { status: 'pending', outcome: null, ...fields });
  await acceptEvents(db.pool, batch(events));
  return events;
}

export function quarantinedMessage(fields: Partial<QuarantinedMessage> = {}): QuarantinedMessage {
  const {
    sourceId = SOURCE,
    coordinates = `orders/0/${last++}`,
    occurredAtMs = 1_763_700_000_123,
  } = fields;
  return {
    projectId: PROJECT,
    id: eventId(sourceId, coordinates, occurredAtMs),
    sourceId,
    occurredAtMs,
    coordinates,
    code: 'not_json',
    reason: 'The message is not JSON.',
    headers: '{}',
    raw: Buffer.from('hunter2'),
    ...fields,
  };
}

/** An attempt answered with 200. */
export function attempt(
  delivery: Pick<NewEventDelivery, 'projectId' | 'id' | 'occurredAtMs' | 'endpointId'>,
  fields: Partial<AttemptRecord> = {},
): AttemptRecord {
  return {
    projectId: delivery.projectId,
    id: delivery.id,
    occurredAtMs: delivery.occurredAtMs,
    attemptId: newId(),
    endpointId: delivery.endpointId,
    number: 1,
    requestedAtMs: Date.now(),
    durationMs: 12,
    target: 'https://example.com/hooks',
    code: 200,
    errorClass: null,
    detail: null,
    responseHeaders: '{}',
    responseBody: '',
    status: 'success',
    dueInMs: null,
    reason: null,
    agentId: 1,
    traceparent: null,
    isUp: true,
    isGone: false,
    isOperational: false,
    ...fields,
  };
}

/** Records the text of every statement of a pool. */
export function noting(db: Database): { pool: Database['pool']; texts: ReadonlySet<string> } {
  const texts = new Set<string>();
  const pool = new Proxy(db.pool, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== 'function') return value;
      return (...given: unknown[]): unknown => {
        const [first] = given;
        const text =
          typeof first === 'string' ? first : (first as { text?: string } | undefined)?.text;
        if (property === 'query' && text) texts.add(text);
        return Reflect.apply(value, target, given);
      };
    },
  });
  return { pool, texts };
}

/** A pool that runs code once, before or after its first statement with this name. */
export function around(
  pool: Database['pool'],
  name: string,
  { before, after }: { before?: () => Promise<unknown>; after?: () => Promise<unknown> },
): Database['pool'] {
  let isFirst = true;
  return new Proxy(pool, {
    get(target, property) {
      if (property !== 'query') return Reflect.get(target, property, target) as unknown;
      const query = target.query.bind(target) as (...given: unknown[]) => Promise<unknown>;
      return async (...given: unknown[]) => {
        const isIt = isFirst && (given[0] as { name?: string }).name === name;
        isFirst &&= !isIt;
        if (isIt) await before?.();
        const result = await query(...given);
        if (isIt) await after?.();
        return result;
      };
    },
  });
}

/** The generic plan of a prepared statement, which is independent of its parameters. */
export async function genericPlan(db: Database, text: string): Promise<string> {
  const parameters = Math.max(
    0,
    ...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)),
  );
  const client = await db.pool.connect();
  try {
    await client.query(`prepare planned as ${text}`);
    const values = parameters === 0 ? '' : `(${Array(parameters).fill('null').join(', ')})`;
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      `explain (costs off) execute planned${values}`,
    );
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  } finally {
    await client.query('deallocate all');
    client.release(true);
  }
}

/**
 * The data plane's tables that a plan reads completely, including by an index without a condition,
 * or by the endpoints' index without an endpoint. Partial indexes of unfinished rows may be read
 * completely.
 */
export function readWhole(plan: string): string[] {
  const scan =
    /Scan (?:using (\w+) )?on ((?:events|event_deliveries|delivery_attempts|idempotency_keys|event_messages|quarantined_messages)\w*)/;
  const lines = plan.split('\n');
  return lines.flatMap((line, k) => {
    const [, index = '', table] = scan.exec(line) ?? [];
    const condition = /^ *Index Cond: (.*)/.exec(lines[k + 1] ?? '')?.[1];
    const isNarrow = index.endsWith('_endpoint_id_id_idx')
      ? condition?.includes('endpoint_id = ')
      : condition !== undefined;
    return table === undefined ||
      isNarrow ||
      /Bitmap|_(next_attempt_at|claimed_by|accepted_at|project_id_endpoint_id)_idx /.test(line)
      ? []
      : [table];
  });
}

/**
 * Returns `skip` of the suite on Citus: for tests of plans, statistics and snapshots, which each of
 * its workers has for itself.
 */
export function onPostgres<T>(tests: Test<T>): Test<T>['skip'] {
  return isOnCitus ? tests.skip : tests;
}

export async function lockAwaited(
  db: { rows(sql: string): Promise<readonly unknown[]> },
  what: string,
): Promise<void> {
  const here = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  // On Citus, the coordinator waits for a table, and the worker for a row. `citus_lock_waits` would
  // wait for the table too.
  const onWorkers = `select from run_command_on_workers($$select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'$$) where success and result::int > 0`;
  const waiting = isOnCitus ? `${here} union all ${onWorkers}` : here;
  await until(what, async () => (await db.rows(waiting)).length > 0);
}

/** Deletes all rows of the data plane. (Truncating a few dozen partitions takes a second.) */
export async function empty(db: { rows(sql: string): Promise<unknown> }): Promise<void> {
  for (const table of [
    'delivery_attempts',
    'event_deliveries',
    'ordered_deliveries',
    'ordered_keys',
    'events',
    'event_messages',
    'quarantined_messages',
    'message_arrivals',
    'idempotency_keys',
    'agents',
  ])
    await db.rows(`delete from ${table}`);
}
