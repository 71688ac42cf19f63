import { eventDeliveryId } from '@gateway/core/events';
import type { Log } from '@gateway/core/logging';
import { backoffMs } from '@gateway/core/process';
import { WAIT_REASONS } from '@gateway/store/deliveries';
import { acceptEvents, encodeSignal, type NewEvent, type NewEventDelivery } from '@gateway/store/events';
import type { Kv } from '@gateway/store/kv';
import { rejectsContent, type Database } from '@gateway/store/postgres';
import { quarantineMessages, type QuarantinedMessage } from '@gateway/store/quarantine';
import type { Outcome as MessageOutcome } from '@gateway/plugin';
import { inactiveReason, type Scheduler } from '../delivery/scheduler.js';
import { debugLog, quarantineFields, type DebugLog } from '../telemetry/debug-log.js';
import type { HeldDelivery } from '../model/delivery.js';
import type { Measure } from '../telemetry/measure.js';
import type { Endpoint, ConfigCache } from '../config/config-cache.js';
import { routingOutcomes } from '../model/routing.js';
import { route, type Target } from '../routing/route.js';
import type { MessageTrace } from '../telemetry/trace-message.js';

/** An event that is ready to be committed, before its route. */
export interface ReadyEvent extends Omit<NewEvent, 'status' | 'outcome' | 'headers'> {
  readonly headers: Readonly<Record<string, string>>;
}

/** One message with all that has to be committed before it may be acknowledged. */
export interface ReadyMessage {
  /** Usually one; a transform may make several. Empty when the message is quarantined. */
  readonly events: readonly ReadyEvent[];
  readonly quarantined: QuarantinedMessage | null;
  /** Makes the quarantined form of an accepted message that Postgres itself refuses. */
  readonly refuse: (reason: string) => QuarantinedMessage;
  readonly settle: (outcome: MessageOutcome) => void;
  readonly trace?: MessageTrace | undefined;
}

export interface EventWriterOptions {
  readonly database: Database;
  readonly kv: Kv;
  readonly store: ConfigCache;
  readonly scheduler: Scheduler;
  readonly log: Log;
  readonly agentId: () => number;
  /** Messages in one commit at most. */
  readonly batchSize: number;
  /** Commits under way at a time. */
  readonly committers: number;
  readonly idempotencyWindowSeconds: number;
  /** True: route here while there is room for the deliveries. False: every event takes both queues. */
  readonly routeInline: boolean;
  /** First attempts are this agent's work; false leaves deliveries scheduled. */
  readonly claimsFirstAttempts: boolean;
  /** Deliveries of a project were left to be claimed, due after a while. */
  readonly onScheduled: (projectId: string, dueInMs: number) => void;
  /** An event was committed that is no duplicate. */
  readonly onAccepted: (event: NewEvent) => void;
  /** Messages were put in quarantine. */
  readonly onQuarantined: (messages: readonly QuarantinedMessage[]) => void;
  readonly measure?: Measure | undefined;
}

/** Accepting waits for room while deliveries move; when none was recorded for this long, events go on through the queues instead. */
const PATIENCE_MS = 500;
/** Content in one commit at most, however few messages that is. */
const BATCH_BYTES = 4 * 1024 * 1024;

/**
 * The durable point: commits micro-batches of what has piled up, and settles their messages afterwards. Never waits for a batch to fill.
 */
export class EventWriter {
  readonly #options: EventWriterOptions;
  readonly #lines: DebugLog | undefined;
  #waiting: ReadyMessage[] = [];
  #committing = 0;
  #scheduled = false;
  #stopped = false;
  /** The commits that have failed and are tried again, oldest first. */
  readonly #failing = new Set<{ readonly since: Date; error: unknown }>();

  constructor(options: EventWriterOptions) {
    this.#options = options;
    this.#lines = debugLog(options.log);
  }

  /** Since when a commit has failed that is still tried again; null when none is. */
  get failingSince(): Date | null {
    return this.#oldestFailing?.since ?? null;
  }

  /** Why, the last time it was tried. */
  get failure(): unknown {
    return this.#oldestFailing?.error;
  }

  get #oldestFailing() {
    const [oldest] = this.#failing;
    return oldest;
  }

  push(message: ReadyMessage): void {
    this.#waiting.push(message);
    this.#schedule();
  }

  /** Settles everything that is not committed as `later`; the broker keeps it. */
  stop(): void {
    this.#stopped = true;
    for (const message of this.#waiting.splice(0)) message.settle('later');
  }

  /** What arrives in one turn of the event loop becomes one batch. */
  #schedule(): void {
    if (this.#scheduled || this.#committing >= this.#options.committers || this.#waiting.length === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#waiting.length > 0 && this.#committing < this.#options.committers) this.#take();
    });
  }

  #take(): void {
    this.#committing++;
    void this.#commitNext()
      .catch((error: unknown) =>
        this.#options.log.error({ error }, 'A batch could not be committed for a reason that is a defect of the gateway.'),
      )
      .finally(() => {
        this.#committing--;
        this.#schedule();
      });
  }

  async #commitNext(): Promise<void> {
    const { batchSize, scheduler, routeInline } = this.#options;
    const hasRoom = routeInline && (scheduler.room > 0 || (await scheduler.waitForRoom(PATIENCE_MS)));
    const messages = this.#waiting.splice(0, this.#fitting(batchSize));
    if (messages.length > 0) await this.#commit(messages, hasRoom);
  }

  /** How many of the waiting messages one statement takes: it is a few texts, and neither side can make texts of any length. */
  #fitting(batchSize: number): number {
    let bytes = 0;
    for (let k = 0; k < Math.min(batchSize, this.#waiting.length); k++) {
      const { events, quarantined } = this.#waiting[k] as ReadyMessage;
      bytes += quarantined?.raw.byteLength ?? 0;
      for (const event of events) {
        bytes += event.data.length;
        for (const name in event.headers) bytes += event.headers[name]?.length ?? 0;
      }
      if (bytes > BATCH_BYTES) return Math.max(1, k);
    }
    return batchSize;
  }

  /** Commits, for as long as it takes; a batch that Postgres refuses for its content is split until the offender stands alone. */
  async #commit(messages: readonly ReadyMessage[], hasRoom: boolean): Promise<void> {
    const refused = await this.#commitUntilAnswered(messages, hasRoom);
    if (refused) await this.#commitApart(messages, hasRoom, refused.error);
  }

  /** Tries until the batch is committed, or given back because this stops; returns the error when Postgres refuses the content. */
  async #commitUntilAnswered(messages: readonly ReadyMessage[], hasRoom: boolean): Promise<{ readonly error: unknown } | undefined> {
    const { log } = this.#options;
    let failing: { readonly since: Date; error: unknown } | undefined;
    try {
      for (let failures = 1; !this.#stopped; failures++) {
        try {
          await this.#commitOnce(messages, hasRoom);
          return undefined;
        } catch (error) {
          if (rejectsContent(error)) return { error };
          // Health tells the log that Postgres is away, and that it is back; here it is told once what that does.
          const write = this.#failing.size === 0 ? 'warn' : 'debug';
          log[write](
            { error, messages: messages.length },
            'Messages could not be committed; they stay unacknowledged and are tried again.',
          );
          if (failing) failing.error = error;
          else this.#failing.add((failing = { since: new Date(), error }));
          await new Promise((resolve) => setTimeout(resolve, backoffMs(failures, { baseMs: 50, capMs: 2_000 })));
        }
      }
      for (const message of messages) message.settle('later');
      return undefined;
    } finally {
      if (failing) this.#failing.delete(failing);
    }
  }

  async #commitApart(messages: readonly ReadyMessage[], hasRoom: boolean, error: unknown): Promise<void> {
    const [only] = messages;
    if (messages.length > 1) {
      const half = messages.length >> 1;
      await this.#commit(messages.slice(0, half), hasRoom);
      await this.#commit(messages.slice(half), hasRoom);
    } else if (only && only.quarantined === null) {
      const reason = `Postgres refused the event as it is: ${(error as Error).message}.`;
      await this.#commit([{ ...only, events: [], quarantined: only.refuse(reason) }], hasRoom);
    } else {
      const fields = only?.quarantined ? quarantineFields(only.quarantined) : {};
      this.#options.log.error({ error, ...fields }, 'A message can be neither accepted nor quarantined; it stays unacknowledged.');
      only?.settle('later');
    }
  }

  async #commitOnce(messages: readonly ReadyMessage[], hasRoom: boolean): Promise<void> {
    const { database, kv, log, agentId: currentAgent, idempotencyWindowSeconds, scheduler, measure } = this.#options;
    const agentId = currentAgent();
    const routingSinceMs = measure ? performance.now() : 0;
    const batch = this.#prepare(messages, hasRoom, agentId);
    const committingSinceMs = measure ? performance.now() : 0;
    const quarantined = messages.flatMap((message) => message.quarantined ?? []);
    // Two statements, each repeatable by itself: a failure between them leaves nothing that the next try does not find as a duplicate.
    if (quarantined.length > 0) await quarantineMessages(database.pool, quarantined);
    const accepted =
      batch.events.length === 0
        ? 'all'
        : await acceptEvents(database.pool, { events: batch.events, deliveries: batch.deliveries, agentId, idempotencyWindowSeconds });
    if (measure) {
      measure.step('commit', committingSinceMs);
      measure.batch('commit', messages.length);
      if (hasRoom && batch.events.length > 0) {
        measure.step('route', routingSinceMs, committingSinceMs);
        measure.batch('route', batch.events.length);
      }
    }

    const isNew = (id: string) => accepted === 'all' || accepted.has(id);
    const { owners } = batch;
    const isNewOf = (message: ReadyMessage, eventId: string) => isNew(eventId) && owners.get(eventId) === message;
    for (const message of messages) {
      // First: the span of a message ends when it is settled, and those within it end before.
      message.trace?.committed(message.quarantined, (eventId) => isNewOf(message, eventId));
      message.settle(
        message.quarantined ? 'quarantined' : message.events.some((event) => isNewOf(message, event.id)) ? 'accepted' : 'duplicate',
      );
    }
    for (const delivery of batch.deliveries)
      if (delivery.status === 'scheduled') this.#options.onScheduled(delivery.projectId, delivery.dueInMs);
    const { onAccepted, onQuarantined } = this.#options;
    if (quarantined.length > 0) onQuarantined(quarantined);
    if (this.#lines) for (const message of quarantined) this.#lines.quarantined(message);
    for (const event of batch.events) {
      if (!isNew(event.id)) continue;
      onAccepted(event);
      this.#lines?.accepted(event);
    }
    const held = accepted === 'all' ? batch.held : batch.held.filter((delivery) => accepted.has(delivery.eventId));
    if (held.length > 0) scheduler.push(held);
    const pending = batch.events.filter((event) => event.status === 'pending' && isNew(event.id));
    if (pending.length > 0) {
      kv.queue('create-event')
        .push(pending.map(encodeSignal))
        .catch((error: unknown) =>
          log.warn({ error, events: pending.length }, 'KV is away: events are routed by the reconciler instead of the queue.'),
        );
    }
  }

  #prepare(messages: readonly ReadyMessage[], hasRoom: boolean, agentId: number) {
    const { store, scheduler } = this.#options;
    const events: NewEvent[] = [];
    const deliveries: NewEventDelivery[] = [];
    const held: HeldDelivery[] = [];
    const owners = new Map<string, ReadyMessage>();
    const keys = new Set<string>();
    // A batch that has begun to fit goes whole: cutting it to the room that is left would make tiny batches under load.
    let room = hasRoom ? Math.max(scheduler.room, this.#options.batchSize) : 0;

    for (const message of messages) {
      for (const event of message.events) {
        // Statements may not meet the same row twice; the second of two is a duplicate by definition.
        const key = event.idempotencyKey === null ? null : `${event.projectId}\n${event.idempotencyKey}`;
        if (owners.has(event.id)) continue;
        if (key !== null && keys.has(key)) continue;
        owners.set(event.id, message);
        if (key !== null) keys.add(key);

        const headers = JSON.stringify(event.headers);
        const routed = room > 0 ? route(store.projects.get(event.projectId), routable(event)) : null;
        // What fails is left to the queues, which make sure that nothing here is out of date before they say so.
        if (!routed || routingOutcomes[routed.outcome].status === 'failed') {
          events.push({ ...event, headers, status: 'pending', outcome: null });
          continue;
        }
        events.push({ ...event, headers, status: routingOutcomes[routed.outcome].status, outcome: routed.outcome });
        room = addDeliveries({ deliveries, held }, event, routed.targets, { ...this.#options, agentId, room });
      }
    }
    // Two agents that meet the same events after a rebalance lock them in one order.
    events.sort((a, b) => (a.id < b.id ? -1 : 1));
    return { events, deliveries, held, owners };
  }
}

/** What routing looks at, of an event that carries its data as text. */
export function routable<E extends Pick<ReadyEvent, 'eventType' | 'messageType' | 'endpointId' | 'ownerId' | 'headers' | 'data'>>(
  event: E,
) {
  let body: unknown;
  return {
    eventType: event.eventType,
    messageType: event.messageType,
    endpointId: event.endpointId,
    ownerId: event.ownerId,
    headers: event.headers,
    body: (): unknown => (body ??= JSON.parse(event.data) as unknown),
  };
}

/**
 * Adds the deliveries of an event to a batch, and those that this agent sends to what it will hold.
 *
 * @returns the room that is left
 */
export function addDeliveries(
  batch: { readonly deliveries: NewEventDelivery[]; readonly held: HeldDelivery[] },
  event: Pick<ReadyEvent, 'projectId' | 'id' | 'occurredAtMs' | 'eventType' | 'sourceId' | 'headers' | 'data'>,
  targets: readonly Target[],
  options: { scheduler: Scheduler; claimsFirstAttempts: boolean; agentId: number; room: number },
): number {
  let { room } = options;
  let body: Buffer | undefined;
  for (const target of targets) {
    const delivery = newDelivery(event, target, room > 0, options);
    batch.deliveries.push(delivery);
    if (delivery.status !== 'processing') continue;
    room--;
    batch.held.push(heldDelivery(event, delivery, options.agentId, (body ??= Buffer.from(event.data))));
  }
  return room;
}

/**
 * The delivery row of a target: born held when this agent sends it, else left to be claimed, or discarded, as its endpoint is.
 *
 * @param hasRoom whether the agent may hold one more
 */
function newDelivery(
  event: Pick<NewEvent, 'projectId' | 'id' | 'occurredAtMs' | 'eventType' | 'sourceId'>,
  { endpoint, subscriptionId }: Target,
  hasRoom: boolean,
  options: { scheduler: Scheduler; claimsFirstAttempts: boolean },
): NewEventDelivery {
  const born = birth(endpoint, hasRoom, options);
  return {
    projectId: event.projectId,
    id: eventDeliveryId(event.id, endpoint.id, subscriptionId),
    occurredAtMs: event.occurredAtMs,
    eventId: event.id,
    endpointId: endpoint.id,
    subscriptionId,
    eventType: event.eventType,
    sourceId: event.sourceId,
    ...born,
  };
}

function birth(
  endpoint: Endpoint,
  hasRoom: boolean,
  { scheduler, claimsFirstAttempts }: { scheduler: Scheduler; claimsFirstAttempts: boolean },
): Pick<NewEventDelivery, 'status' | 'dueInMs' | 'reason'> {
  switch (endpoint.status) {
    case 'inactive':
      return { status: 'discarded', dueInMs: 0, reason: inactiveReason(endpoint) };
    case 'paused':
      return { status: 'scheduled', dueInMs: Infinity, reason: null };
    case 'active': {
      const wait = scheduler.waits.bornLater(endpoint);
      if (wait) {
        return {
          status: 'scheduled',
          dueInMs: wait.dueInMs + Math.round(Math.random() * wait.spreadMs),
          reason: WAIT_REASONS[wait.reason],
        };
      }
      return { status: hasRoom && claimsFirstAttempts ? 'processing' : 'scheduled', dueInMs: 0, reason: null };
    }
  }
}

/** The held form of a delivery that was just born. */
function heldDelivery(
  event: Pick<ReadyEvent, 'eventType' | 'sourceId' | 'headers'>,
  delivery: NewEventDelivery,
  agentId: number,
  body: Buffer,
): HeldDelivery {
  return {
    projectId: delivery.projectId,
    id: delivery.id,
    occurredAtMs: delivery.occurredAtMs,
    eventId: delivery.eventId,
    endpointId: delivery.endpointId,
    attempts: 0,
    eventType: event.eventType,
    sourceId: event.sourceId,
    traceparent: null,
    headers: event.headers,
    body,
    agentId,
  };
}
