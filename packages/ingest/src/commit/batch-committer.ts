import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import { inSlices } from '@gateway/core/process';
import { routingOutcomes } from '@gateway/core/routing';
import {
  type Accepted,
  acceptEvents,
  type EventRef,
  EVERYTHING,
  firstArrivals,
  type MessageOfEvents,
  type NewEvent,
  readFences,
  readVerdicts,
  releaseKeys,
  type EventVerdict,
} from '@gateway/store/events';
import type { Kv } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';
import { type QuarantinedMessage, quarantineMessages } from '@gateway/store/quarantine';
import type { Creation, ReadyMessage } from '../message/ready-message.js';
import type { IngestMeasure } from '../message/telemetry.js';
import type { Rejection } from '../validate/reject-codes.js';
import type { CommitPlan, EventRouter } from '../routing/event-router.js';
import { advanceTurns } from './advance-turns.js';
import { debugLog, type DebugLog } from './debug-log.js';
import { byId, onePerKey } from './new-events.js';
import { signalPending } from './signal-pending.js';
import type { UsageCounter } from './usage-counter.js';

export interface BatchCommitterOptions {
  readonly config: Pick<Config, 'ingest'>;
  readonly shard: string;
  readonly database: Pick<Database, 'pool'>;
  readonly kv: Pick<Kv, 'queue'>;
  readonly log: Log;
  readonly measure?: Pick<IngestMeasure, 'step' | 'batch' | 'quarantined'> | undefined;
  readonly router: EventRouter;
  readonly usage: Pick<UsageCounter, 'event'>;
}

const NONE: Awaited<ReturnType<typeof quarantineMessages>> = new Map();
const NOTHING: Accepted = { created: 'all', refused: new Set(), turns: null };
const NO_FENCES: ReadonlyMap<string, string> = new Map();
const NO_VERDICTS: ReadonlyMap<NewEvent, EventVerdict> = new Map();
const RETRY_AFTER_SECONDS = 1;

const COORDINATES_REUSED: Rejection = {
  code: 'coordinates_reused',
  reason:
    'An event of other content was accepted with the same coordinates and time before agents kept a digest of each message, so it cannot be told whether this is that message again or one of a topic that was created anew. Compare it with that event; if it is another message, replay it.',
};

interface Committed {
  isNew(message: ReadyMessage, event: Pick<NewEvent, 'id'>): boolean;
  readonly verdicts: ReadonlyMap<NewEvent, EventVerdict>;
  creationOf(event: NewEvent): Creation;
  /** Returns why a message was not added to quarantine, or undefined if it was added. */
  leftAs(message: QuarantinedMessage): 'same' | 'other' | 'refused' | undefined;
}

/** Messages that a commit left undecided. */
export interface Undecided {
  /** To be committed again, with new ids or a rejection. */
  readonly again: readonly ReadyMessage[];
  /**
   * A fence refused these, which may be in the history of their project that is being moved here.
   */
  readonly refused: readonly ReadyMessage[];
}

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
  readonly #stored = new WeakSet<QuarantinedMessage>();

  constructor(private readonly options: BatchCommitterOptions) {
    this.#debugLog = debugLog(options.log);
  }

  /** Commits messages, settles each one that is decided, and returns the others. */
  async commit(messages: readonly ReadyMessage[]): Promise<Undecided> {
    const routingSinceMs = this.options.measure ? performance.now() : 0;
    // Without an await, unless there are undated messages: the next commit must see the capacity
    // that this one reserves.
    const undated = messages.filter(({ isUndated }) => isUndated);
    if (undated.length > 0) await this.#date(undated);
    const batch = await inSlices(this.#prepare(messages));
    try {
      return await this.#write(messages, batch, routingSinceMs);
    } catch (error) {
      batch.plan.drop();
      throw error;
    }
  }

  /**
   * Dates messages by their first arrival, stored before any of their data so that a redelivery
   * gets the same time.
   */
  async #date(messages: readonly ReadyMessage[]): Promise<void> {
    const arrivals = await firstArrivals(this.options.database.pool, messages.flatMap(refsOf));
    for (const message of messages) {
      message.date(arrivals.get(refsOf(message)[0]!.id));
    }
  }

  async #write(
    messages: readonly ReadyMessage[],
    batch: CommitBatch,
    routingSinceMs: number,
  ): Promise<Undecided> {
    const { config, database, measure } = this.options;
    const { events, owners, plan } = batch;
    const committingSinceMs = measure ? performance.now() : 0;
    const quarantined = messages.flatMap(({ quarantined: it }) => it ?? []);
    // Both statements can be repeated. After a failure between them, the rows stored by the first
    // still count as new.
    const left =
      quarantined.length > 0 ? await quarantineMessages(database.pool, quarantined) : NONE;
    for (const message of quarantined) if (!left.has(message)) this.#stored.add(message);
    const leftAs = (message: QuarantinedMessage) =>
      this.#stored.has(message) ? undefined : left.get(message);
    const {
      created,
      refused: refusedIds,
      turns,
    }: Accepted = events.length === 0
      ? NOTHING
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
      if (plan.routes && events.length > 0) {
        measure.step('route', routingSinceMs, committingSinceMs);
        measure.batch('route', events.length);
      }
    }
    const isNew = (eventId: string) => created === 'all' || created.has(eventId);
    const isNewOf: Committed['isNew'] = (message, { id }) =>
      isNew(id) && owners.get(id) === message;
    const fenced = new Set([...refusedIds].map((id) => owners.get(id)!.projectId));
    // With its own event, also that of another message with the same idempotency key is refused.
    const isRefused = (message: ReadyMessage) =>
      message.quarantined
        ? leftAs(message.quarantined) === 'refused'
        : fenced.has(message.projectId) &&
          message.events.some(({ id }) => refusedIds.has(id) || !owners.has(id)) &&
          !message.events.some((event) => isNewOf(message, event));
    const refused = new Set(fenced.size === 0 && left.size === 0 ? [] : messages.filter(isRefused));
    const decided = refused.size === 0 ? messages : messages.filter((it) => !refused.has(it));
    const old = decided.flatMap((it) => it.events.filter((event) => !isNewOf(it, event)));
    const verdicts = old.length > 0 ? await readVerdicts(database.pool, old) : NO_VERDICTS;
    const collided = old.filter(
      (event) =>
        event.idempotencyKey !== null &&
        ['collision', 'unclear'].includes(verdicts.get(event)?.is ?? ''),
    );
    if (collided.length > 0) await releaseKeys(database.pool, collided);
    const fences = await this.#fencesOf([...refused]);
    const creationOf = creationBy(verdicts);
    const committed = { isNew: isNewOf, verdicts, leftAs, creationOf };
    const again: ReadyMessage[] = [];
    for (const message of decided) {
      if (isUndecided(message, committed)) again.push(message);
      else settle(message, committed);
    }
    this.#count(
      quarantined.filter((message) => leftAs(message) === undefined),
      events,
      isNew,
    );
    plan.handOver(isNew, turns);
    if (turns) {
      const waiting = plan.deliveries.filter(({ eventId }) => isNew(eventId));
      plan.turned(await advanceTurns(this.options, waiting, turns));
    }
    void signalPending(
      this.options,
      events.filter((event) => event.status === 'pending' && isNew(event.id)),
    );
    const waiting = [...refused].filter((it) => !passOn(it, fences.get(it.projectId)));
    return { again, refused: waiting };
  }

  async #fencesOf(refused: readonly ReadyMessage[]): Promise<ReadonlyMap<string, string>> {
    if (refused.length === 0) return NO_FENCES;
    const projectIds = refused.map(({ projectId }) => projectId);
    return readFences(this.options.database.pool, projectIds);
  }

  /** Routes the events of a batch. Yields after each, because filters on large bodies are slow. */
  *#prepare(messages: readonly ReadyMessage[]): Generator<void, CommitBatch> {
    const { config, router } = this.options;
    const events: NewEvent[] = [];
    const owners = new Map<string, ReadyMessage>();
    const isFirst = onePerKey();
    const plan = router.plan(config.ingest.inline_routing);
    for (const message of messages) {
      for (const event of message.events) {
        if (owners.has(event.id) || !isFirst(event)) continue;
        owners.set(event.id, message);
        event.outcome = plan.route(event);
        event.status = event.outcome === null ? 'pending' : routingOutcomes[event.outcome].status;
        events.push(event);
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
 * Leaves a message of a project that is on another shard: its broker delivers it again, and a caller
 * sends it again. Returns false for one that only waits for the history of its project.
 */
function passOn(message: ReadyMessage, through: string | undefined): boolean {
  if (message.failed)
    message.failed(new GatewayError('project_moved', { retryAfterSeconds: RETRY_AFTER_SECONDS }));
  else if (through === EVERYTHING) message.settle('later');
  else return false;
  return true;
}

function refsOf({ events, quarantined }: ReadyMessage): readonly EventRef[] {
  return quarantined ? [quarantined] : events;
}

/**
 * A message that was not stored because a different one has its coordinates and time, such as after
 * a topic was recreated, gets new ids, or is rejected if that cannot be told. Returns whether it must
 * be committed again.
 */
function isUndecided(message: ReadyMessage, { verdicts, leftAs }: Committed): boolean {
  const { events, quarantined } = message;
  if (quarantined ? leftAs(quarantined) !== 'other' : verdicts.size === 0) return false;
  const idsOf = (is: EventVerdict['is']) =>
    new Set(events.flatMap((event) => (verdicts.get(event)?.is === is ? [event.id] : [])));
  if (idsOf('unclear').size > 0) message.reject(COORDINATES_REUSED);
  else if (quarantined || idsOf('collision').size > 0) message.distinguish(idsOf('collision'));
  else return idsOf('free').size > 0;
  return true;
}

function settle(message: ReadyMessage, { isNew, leftAs, creationOf }: Committed): void {
  const { events, quarantined } = message;
  const isNewMessage = quarantined
    ? leftAs(quarantined) === undefined
    : events.some((event) => isNew(message, event));
  const outcome = !isNewMessage ? 'duplicate' : quarantined ? 'quarantined' : 'accepted';
  message.settle(outcome, creationOf);
}

function creationBy(verdicts: Committed['verdicts']): Committed['creationOf'] {
  return (event) => {
    const verdict = verdicts.get(event);
    return verdict?.is === 'duplicate'
      ? { id: verdict.id, duplicate: true }
      : { id: event.id, duplicate: false };
  };
}
