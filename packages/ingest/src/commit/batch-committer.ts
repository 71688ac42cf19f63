import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import { inSlices } from '@gateway/core/process';
import {
  acceptEvents,
  firstArrivals,
  type MessageOfEvents,
  type NewEvent,
  readMoved,
} from '@gateway/store/events';
import type { Kv } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';
import { type QuarantinedMessage, quarantineMessages } from '@gateway/store/quarantine';
import type { UsageCounter } from '@gateway/store/usage';
import type { ReadyEvent, ReadyMessage } from '../message/ready-message.js';
import type { IngestMeasure } from '../message/telemetry.js';
import type { CommitPlan, EventRouter } from '../routing/event-router.js';
import { debugLog, type DebugLog } from './debug-log.js';
import { type FormerShards, refsOf } from './former-shards.js';
import { type Committed, distinguish } from './distinguish.js';
import { byId, newEvent, onePerKey } from './new-events.js';
import { signalPending } from './signal-pending.js';

export interface BatchCommitterOptions {
  readonly config: Pick<Config, 'ingest'>;
  /** The shard that the events are committed to, and its database. */
  readonly shard: string;
  readonly database: Pick<Database, 'pool'>;
  readonly kv: Pick<Kv, 'queue'>;
  readonly log: Log;
  readonly measure?: Pick<IngestMeasure, 'step' | 'batch' | 'quarantined'> | undefined;
  readonly router: EventRouter;
  readonly usage: Pick<UsageCounter, 'event'>;
  /** Finds what former shards of a project have accepted. By default, no project has any. */
  readonly former?: FormerShards | undefined;
}

const NONE: Awaited<ReturnType<typeof quarantineMessages>> = new Map();
const NOWHERE: ReadonlyMap<string, string> = new Map();
const RETRY_AFTER_SECONDS = 1;

interface CommitBatch {
  readonly events: NewEvent[];
  readonly plan: CommitPlan;
  readonly owners: ReadonlyMap<string, ReadyMessage>;
}

/**
 * Routes and commits a batch of messages, or quarantines them, and counts new events and
 * quarantined messages.
 */
export class BatchCommitter {
  readonly #debugLog: DebugLog;
  /** Quarantined messages stored by this process. */
  readonly #stored = new WeakSet<QuarantinedMessage>();

  constructor(private readonly options: BatchCommitterOptions) {
    this.#debugLog = debugLog(options.log);
  }

  /**
   * Commits messages and settles each one that is decided. Returns the others, which must be
   * committed again: they have new ids or a rejection, or their former shards must be asked first.
   *
   * @param hasRoom whether the events are routed in the commit; otherwise they are left to the
   *   queues
   */
  async commit(
    given: readonly ReadyMessage[],
    hasRoom: boolean,
  ): Promise<ReadonlySet<ReadyMessage>> {
    const routingSinceMs = this.options.measure ? performance.now() : 0;
    // Without an await, unless there are undated messages: the next commit must see the capacity
    // that this one reserves.
    const { messages, known, unasked } = this.#known(given);
    if (messages.length === 0) return unasked;
    const undated = messages.filter(({ isUndated }) => isUndated);
    if (undated.length > 0) await this.#date(undated);
    const batch = await inSlices(this.#prepare(messages, hasRoom, known));
    try {
      const again = await this.#write(messages, batch, { hasRoom, routingSinceMs, known });
      return unasked.size === 0 ? again : new Set([...again, ...unasked]);
    } catch (error) {
      batch.plan.drop();
      throw error;
    }
  }

  /** Returns what former shards know of the messages, and those about which they must be asked. */
  #known(given: readonly ReadyMessage[]) {
    const { former } = this.options;
    const answers = new Set<ReadonlySet<string>>();
    const unasked = new Set<ReadyMessage>();
    for (const message of former ? given : []) {
      const ids = former!.knownOf(message);
      if (ids) answers.add(ids);
      else unasked.add(message);
    }
    const known: ReadonlySet<string> = new Set([...answers].flatMap((ids) => [...ids]));
    const messages = unasked.size === 0 ? given : given.filter((message) => !unasked.has(message));
    return { messages, known, unasked };
  }

  /**
   * Dates messages by their first arrival, stored before any of their data so that a redelivery
   * gets the same time.
   */
  async #date(messages: readonly ReadyMessage[]): Promise<void> {
    const arrivals = await firstArrivals(this.options.database.pool, messages.flatMap(refsOf));
    for (const message of messages) {
      message.date?.(arrivals.get(refsOf(message)[0]!.id));
    }
  }

  async #write(
    messages: readonly ReadyMessage[],
    batch: CommitBatch,
    {
      hasRoom,
      routingSinceMs,
      known,
    }: { hasRoom: boolean; routingSinceMs: number; known: ReadonlySet<string> },
  ): Promise<ReadonlySet<ReadyMessage>> {
    const { config, database, measure } = this.options;
    const { events, owners, plan } = batch;
    const committingSinceMs = measure ? performance.now() : 0;
    const quarantined = messages.flatMap(({ quarantined: it }) =>
      it && !known.has(it.id) ? it : [],
    );
    // Both statements can be repeated. After a failure between them, the rows stored by the first
    // still count as new.
    const left =
      quarantined.length > 0 ? await quarantineMessages(database.pool, quarantined) : NONE;
    for (const message of quarantined) if (!left.has(message)) this.#stored.add(message);
    const leftAs: Committed['leftAs'] = (message) =>
      known.has(message.id) ? 'same' : this.#stored.has(message) ? undefined : left.get(message);
    const accepted =
      events.length === 0
        ? 'all'
        : await acceptEvents(database.pool, {
            events,
            deliveries: plan.deliveries,
            messages: keptOf(messages, batch),
            agentId: plan.agentId,
            idempotencyWindowSeconds: config.ingest.idempotency_window_seconds,
          });
    if (measure) {
      measure.step('commit', committingSinceMs);
      measure.batch('commit', messages.length);
      if (hasRoom && events.length > 0) {
        measure.step('route', routingSinceMs, committingSinceMs);
        measure.batch('route', events.length);
      }
    }
    const isNew = (eventId: string) => accepted === 'all' || accepted.has(eventId);
    const committed: Committed = {
      isNew: (message, { id }) => isNew(id) && owners.get(id) === message,
      leftAs,
    };
    const isWhole = accepted === 'all' && left.size === 0;
    const moved = isWhole
      ? NOWHERE
      : await readMoved(
          database.pool,
          messages.map(({ projectId }) => projectId),
        );
    const stayed = moved.size === 0 ? messages : messages.filter((it) => !moved.has(it.projectId));
    const again = await distinguish(database.pool, stayed, committed);
    for (const message of messages) {
      const shard = moved.get(message.projectId);
      if (shard !== undefined) passOn(message, shard);
      else if (!again.has(message)) settle(message, committed);
    }
    this.#count(
      quarantined.filter((message) => leftAs(message) === undefined),
      events,
      isNew,
    );
    plan.handOver(isNew);
    void signalPending(
      this.options,
      events.filter((event) => event.status === 'pending' && isNew(event.id)),
    );
    return again;
  }

  /** Routes the events of a batch. Yields after each, because filters on large bodies are slow. */
  *#prepare(
    messages: readonly ReadyMessage[],
    hasRoom: boolean,
    known: ReadonlySet<string>,
  ): Generator<void, CommitBatch> {
    const events: NewEvent[] = [];
    const owners = new Map<string, ReadyMessage>();
    const isFirst = onePerKey();
    const plan = this.options.router.plan(hasRoom);
    for (const message of messages) {
      for (const event of message.events) {
        if (owners.has(event.id) || known.has(event.id) || !isFirst(event)) continue;
        owners.set(event.id, message);
        events.push(newEvent(event, plan.route(event)));
        yield;
      }
    }
    events.sort(byId);
    return { events, plan, owners };
  }

  #count(
    quarantined: readonly QuarantinedMessage[],
    events: readonly NewEvent[],
    isNew: (eventId: string) => boolean,
  ): void {
    const { usage, measure } = this.options;
    if (quarantined.length > 0) measure?.quarantined(quarantined);
    if (this.#debugLog) for (const message of quarantined) this.#debugLog.quarantined(message);
    for (const event of events) {
      if (!isNew(event.id)) continue;
      usage.event(event.projectId, event.data);
      this.#debugLog?.accepted(event);
    }
  }
}

/** Returns the kept messages of the batch, each with the ids of its own events. */
function keptOf(messages: readonly ReadyMessage[], { owners }: CommitBatch): MessageOfEvents[] {
  return messages.flatMap((message) => {
    const { kept, events } = message;
    return kept
      ? [
          {
            message: kept,
            eventIds: events.flatMap(({ id }) => (owners.get(id) === message ? [id] : [])),
          },
        ]
      : [];
  });
}

/**
 * Leaves a message to the shard that its project has moved to: its broker delivers it again, and
 * its caller sends it again.
 */
function passOn(message: ReadyMessage, shard: string): void {
  if (message.failed)
    message.failed(
      new GatewayError('project_moved', { shard, retryAfterSeconds: RETRY_AFTER_SECONDS }),
    );
  else message.settle('later');
}

function settle(message: ReadyMessage, committed: Committed): void {
  const { events, quarantined } = message;
  const isNew = (event: Pick<ReadyEvent, 'id'>) => committed.isNew(message, event);
  if (quarantined)
    message.settle(
      committed.leftAs(quarantined) === undefined ? 'quarantined' : 'duplicate',
      isNew,
    );
  else message.settle(events.some(isNew) ? 'accepted' : 'duplicate', isNew);
}
