import type { Config } from '@gateway/core/config';
import type { Log } from '@gateway/core/logging';
import {
  backoffMs,
  type Failing,
  inSlices,
  type ProjectPace,
  workOfEvents,
} from '@gateway/core/process';
import { Stage } from '@gateway/core/queue';
import {
  acceptEvents,
  type EventRef,
  firstArrivals,
  type MessageOfEvents,
  type NewEvent,
} from '@gateway/store/events';
import type { Kv } from '@gateway/store/kv';
import { type Database, rejectsContent } from '@gateway/store/postgres';
import { type QuarantinedMessage, quarantineMessages } from '@gateway/store/quarantine';
import type { UsageCounter } from '@gateway/store/usage';
import type { IngestMeasure } from '../message/telemetry.js';
import type { ReadyEvent, ReadyMessage } from '../message/ready-message.js';
import { databaseRefused } from '../message/reject-codes.js';
import { debugLog, type DebugLog, quarantineFields } from './debug-log.js';
import { type Committed, distinguish } from './distinguish.js';
import type { CommitPlan, EventRouter } from '../routing/event-router.js';
import { byId, newEvent, onePerKey } from './new-events.js';
import { signalPending } from './signal-pending.js';

export interface EventWriterOptions {
  readonly config: Pick<Config, 'ingest'>;
  readonly database: Pick<Database, 'pool'>;
  readonly kv: Pick<Kv, 'queue'>;
  readonly log: Log;
  readonly measure?: Pick<IngestMeasure, 'step' | 'batch' | 'quarantined'> | undefined;
  readonly router: EventRouter;
  readonly pace: ProjectPace;
  readonly usage: Pick<UsageCounter, 'event'>;
  /** Concurrent commits. */
  readonly committers: number;
}

/** A commit waits for capacity until nothing was recorded for this long; queues then route it. */
const PATIENCE_MS = 500;
/**
 * A project that holds most of its share commits at this interval, or once it holds less.
 * Deliveries committed without capacity are written again when claimed, which takes the capacity of
 * the next commit.
 */
const BUSY_MS = 250;
/** Interval of checks on waiting projects; messages accumulate meanwhile. */
const LOOK_MS = 20;
/** Content of a commit, unless one message exceeds it: its few parameters have limited lengths. */
const BATCH_BYTES = 4 * 1024 * 1024;

/** Bytes or events of a large message. Large ones share commits, so small ones need not wait. */
const LARGE_BYTES = 64 * 1024;
const LARGE_EVENTS = 100;
/** Content of large messages in a commit, unless one exceeds it; 1 or 2 ms of socket writes. */
const LARGE_BATCH_BYTES = 1024 * 1024;

interface Waiting {
  readonly message: ReadyMessage;
  /** The weight in a commit: commits are short even if a function makes many events. */
  readonly size: number;
  readonly isLarge: boolean;
  /** When its project's pace admits it, on the monotonic clock; 0: immediately. */
  readonly dueAtMs: number;
  /** Whether its commit routes, decided when the commit is first tried. */
  hasRoom: boolean | undefined;
}

const NONE: Awaited<ReturnType<typeof quarantineMessages>> = new Map();

interface Batch {
  readonly events: NewEvent[];
  readonly plan: CommitPlan;
  readonly owners: ReadonlyMap<string, ReadyMessage>;
}

/**
 * Commits micro-batches of accumulated messages, projects in turn, without waiting to fill them.
 */
export class EventWriter {
  readonly #stage: Stage<Waiting>;
  readonly #debugLog: DebugLog;
  /** Start of the time without a commit for each busy project, on the monotonic clock. */
  readonly #busySinceMs = new Map<string, number>();
  readonly #failed = new WeakSet<ReadyMessage>();
  /** Messages that this writer put in quarantine. */
  readonly #stored = new WeakSet<QuarantinedMessage>();

  constructor(private readonly options: EventWriterOptions) {
    const { config, committers, router, log } = options;
    this.#debugLog = debugLog(log);
    this.#stage = new Stage<Waiting>({
      concurrency: committers,
      capacity: config.ingest.batch_size,
      sizeOf: ({ size }) => size,
      ownerOf: ({ message }) => message.projectId,
      together: (first, { isLarge }) => first.isLarge === isLarge,
      gate: (waiting, underWay) => this.#waitMs(waiting, underWay),
      work: (waiting) => this.#commitWaiting(waiting),
      // Health logs the state of Postgres; one line here states the consequence.
      failed: (error, { length: messages }, isFirst) =>
        log[isFirst ? 'warn' : 'debug'](
          { error, messages },
          'Messages could not be committed; they stay unacknowledged and are tried again.',
        ),
      backoffMs: (failures) => backoffMs(failures, { baseMs: 50, capMs: 2_000 }),
      refuses: rejectsContent,
      replace: (waiting, error) =>
        this.#quarantineRefused(waiting.message, error) ? waiting : undefined,
      ended: (_, left) => {
        for (const { message } of left) message.settle('later');
      },
    });
    router.onRecorded(() => {
      if (this.#busySinceMs.size > 0) this.#stage.wake();
    });
  }

  /** See `Stage.failing`. */
  get failing(): Failing | undefined {
    return this.#stage.failing;
  }

  /**
   * Returns immediately. The message is settled after its commit, which is retried until the writer
   * stops. A message with `failed` fails immediately while all commits fail: its caller must not
   * wait for Postgres.
   */
  push(message: ReadyMessage): void {
    if (message.failed && this.#stage.isStuck) return message.failed(this.failing?.error);
    const { projectId, events } = message;
    const batchSize = this.options.config.ingest.batch_size;
    const [rows, bytes] = [Math.max(1, events.length), bytesOf(message)];
    const waitMs = this.options.pace.add(
      projectId,
      Math.max(0, workOfEvents(rows, bytes) - (message.counted ?? 0)),
    );
    const isLarge = bytes > LARGE_BYTES || rows > LARGE_EVENTS;
    const size = Math.max(rows, (bytes * batchSize) / (isLarge ? LARGE_BATCH_BYTES : BATCH_BYTES));
    // The pace has already admitted a message whose caller waits.
    const dueAtMs = waitMs > 0 && !message.failed ? performance.now() + waitMs : 0;
    this.#stage.push({ message, size, isLarge, dueAtMs, hasRoom: undefined });
  }

  /** Settles uncommitted messages as `later`: the broker keeps them. */
  stop(): void {
    this.#stage.stop();
  }

  /** Milliseconds until a commit. One committer is reserved for small messages. */
  #waitMs(
    { message, isLarge, dueAtMs }: Waiting,
    underWay: ReadonlySet<readonly Waiting[]>,
  ): number {
    const { committers, router } = this.options;
    if (isLarge && committers > 1) {
      let large = 0;
      for (const [first] of underWay) if (first!.isLarge) large++;
      if (large >= committers - 1) return Infinity;
    }
    const isBusy = router.isBusy(message.projectId);
    if (!isBusy && this.#busySinceMs.size > 0) this.#busySinceMs.delete(message.projectId);
    if (!isBusy && dueAtMs === 0) return 0;
    const nowMs = performance.now();
    if (isBusy) {
      const sinceMs = this.#busySinceMs.get(message.projectId) ?? nowMs;
      this.#busySinceMs.set(message.projectId, sinceMs);
      if (nowMs - sinceMs < BUSY_MS) return LOOK_MS;
    }
    return dueAtMs > nowMs ? Math.max(LOOK_MS, dueAtMs - nowMs) : 0;
  }

  async #commitWaiting(waiting: readonly Waiting[]): Promise<void> {
    const { config, router } = this.options;
    for (const { message } of waiting) this.#busySinceMs.delete(message.projectId);
    let { hasRoom } = waiting[0]!;
    if (hasRoom === undefined) {
      hasRoom =
        config.ingest.inline_routing && (router.hasRoom || (await router.waitForRoom(PATIENCE_MS)));
      for (const one of waiting) one.hasRoom = hasRoom;
    }
    await this.#commit(
      waiting.map(({ message }) => message),
      hasRoom,
    );
  }

  /** @returns false: the message is given up */
  #quarantineRefused(message: ReadyMessage, error: Error): boolean {
    if (message.quarantined === null) {
      message.reject(databaseRefused(error));
      return true;
    }
    const fields = quarantineFields(message.quarantined);
    this.options.log.error(
      { error, ...fields },
      'A message can be neither accepted nor quarantined; it stays unacknowledged.',
    );
    message.settle('later');
    return false;
  }

  /** @param hasRoom false leaves the events to the queues */
  async #commit(given: readonly ReadyMessage[], hasRoom: boolean): Promise<void> {
    const { measure } = this.options;
    const messages = given.filter((message) => !this.#failed.has(message));
    try {
      await this.#commitAll(messages, hasRoom, measure ? performance.now() : 0);
    } catch (error) {
      if (rejectsContent(error)) throw error;
      const called = messages.filter(({ failed }) => failed !== undefined);
      for (const message of called) {
        this.#failed.add(message);
        message.failed!(error);
      }
      if (called.length < messages.length) throw error;
    }
  }

  async #commitAll(
    messages: readonly ReadyMessage[],
    hasRoom: boolean,
    routingSinceMs: number,
  ): Promise<void> {
    const undated = messages.filter(({ isUndated }) => isUndated);
    if (undated.length > 0) await this.#date(undated);
    const batch = await inSlices(this.#prepare(messages, hasRoom));
    try {
      await this.#write(messages, batch, hasRoom, routingSinceMs);
    } catch (error) {
      batch.plan.drop();
      throw error;
    }
  }

  /** Dates messages by their first arrival, which is stored before any of their data. */
  async #date(messages: readonly ReadyMessage[]): Promise<void> {
    const refsOf = ({ events, quarantined }: ReadyMessage): readonly EventRef[] =>
      quarantined ? [quarantined] : events;
    const arrivals = await firstArrivals(this.options.database.pool, messages.flatMap(refsOf));
    for (const message of messages) message.date?.(arrivals.get(refsOf(message)[0]!.id));
  }

  async #write(
    messages: readonly ReadyMessage[],
    batch: Batch,
    hasRoom: boolean,
    routingSinceMs: number,
  ): Promise<void> {
    const { config, database, measure } = this.options;
    const { events, owners, plan } = batch;
    const committingSinceMs = measure ? performance.now() : 0;
    const quarantined = messages.flatMap((message) => message.quarantined ?? []);
    // Repeatable statements: after a failure between them, rows of the first still count as new.
    const left =
      quarantined.length > 0 ? await quarantineMessages(database.pool, quarantined) : NONE;
    for (const message of quarantined) if (!left.has(message)) this.#stored.add(message);
    const leftAs: Committed['leftAs'] = (message) =>
      this.#stored.has(message) ? undefined : left.get(message);
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
    const again = await distinguish(database.pool, messages, committed);
    for (const message of messages) {
      if (again.has(message)) this.push(message);
      else settle(message, committed);
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
  }

  /** Yields after each event: filters of large bodies take milliseconds. */
  *#prepare(messages: readonly ReadyMessage[], hasRoom: boolean): Generator<void, Batch> {
    const events: NewEvent[] = [];
    const owners = new Map<string, ReadyMessage>();
    const isFirst = onePerKey();
    const plan = this.options.router.plan(hasRoom);
    for (const message of messages) {
      for (const event of message.events) {
        if (owners.has(event.id) || !isFirst(event)) continue;
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

/** Bytes committed for a message: its events, or itself when quarantined or kept. */
function bytesOf({ events, quarantined, kept }: ReadyMessage): number {
  let bytes = quarantined?.raw.byteLength ?? kept?.raw?.byteLength ?? 0;
  for (const event of events) {
    bytes += event.data.length + (event.notes?.length ?? 0);
    for (const name in event.headers) bytes += event.headers[name]?.length ?? 0;
  }
  return bytes;
}

/** Returns the kept messages with their own events in the batch. */
function keptOf(messages: readonly ReadyMessage[], { owners }: Batch): MessageOfEvents[] {
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
