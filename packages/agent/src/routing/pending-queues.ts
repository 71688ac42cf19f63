import { backoffMs, ProjectTurns } from '@gateway/core/process';
import { BODY_AT_ONCE_MAX } from '@gateway/ingest/routing/matcher';
import {
  decodeSignal,
  encodeSignal,
  type EventRef,
  type PendingEvent,
} from '@gateway/store/events';
import { queueOf, type QueueKind, type Signal, type SignalQueue } from '@gateway/store/kv';
import type { AgentContext } from '../config/agent-context.js';
import type { Claimer } from '../delivery/claimer.js';
import type { DeliveriesInFlight } from '../delivery/in-flight.js';
import { needsMatching } from '@gateway/core/routing';
import type { Routing } from '../telemetry/trace-routing.js';
import type { PendingRouter } from './pending-router.js';

const BATCH_MAX = 200;
/** Waiting events with large bodies. Signals of further ones are pulled again after ten seconds. */
const LARGE_MAX = 32;

interface QueueOptions extends Pick<AgentContext, 'kv' | 'shard' | 'log' | 'tracing'> {
  readonly router: PendingRouter;
  readonly inFlight: Pick<DeliveriesInFlight, 'room' | 'waitForRoom'>;
}

/**
 * Routes events that need no matching, and pushes the signals of other events to
 * match-subscriptions.
 */
export function consumeCreateEvent(options: QueueOptions, signal: AbortSignal): Promise<void> {
  return consume('create-event', options, signal, async (events, routing) => {
    const toMatch = events.filter(needsMatching);
    if (toMatch.length > 0)
      await queueIn(options, 'match-subscriptions').push(toMatch.map(encodeSignal));
    options.tracing?.routing.passedOn(toMatch, routing);
    return options.router.route(
      events.filter((event) => !needsMatching(event)),
      routing,
    );
  });
}

/**
 * The slow half of routing. The separate queue prevents head-of-line blocking of events that need
 * no matching.
 */
export function consumeMatchSubscriptions(
  options: QueueOptions,
  signal: AbortSignal,
): Promise<void> {
  return consume('match-subscriptions', options, signal, (events, routing) =>
    options.router.route(events, routing),
  );
}

export function consumeFirstAttempts(
  { claimer, ...options }: QueueOptions & { readonly claimer: Pick<Claimer, 'claimEvents'> },
  signal: AbortSignal,
): Promise<void> {
  return pullFrom('first-attempts', options, signal, async (signals, queue) => {
    await claimer.claimEvents(signals.flatMap(({ text }) => decodeSignal(text) ?? []));
    await queue.done(signals.map(({ ticket }) => ticket));
  });
}

/**
 * Pulls only while there is capacity. Signals of events left pending are not acknowledged, so any
 * agent may pull them again after ten seconds.
 */
async function consume(
  name: QueueKind,
  options: QueueOptions,
  signal: AbortSignal,
  work: (events: PendingEvent[], routing: Routing) => Promise<ReadonlySet<string>>,
): Promise<void> {
  const { router, log, tracing } = options;
  const apart = new LargeEvents(log);
  await pullFrom(name, options, signal, async (signals, queue) => {
    const since = new Map<string, number>();
    const refs = signals.flatMap(({ text, pushedAtMs }) => {
      const ref = decodeSignal(text);
      if (tracing && ref) since.set(ref.id, pushedAtMs);
      return ref ?? [];
    });
    const postponed = new Set(router.postponed);
    const routing: Routing = { by: name, since };
    const ticketsOf = (isTheirs: (ref: EventRef | null) => boolean) =>
      signals.flatMap(({ text, ticket }) => (isTheirs(decodeSignal(text)) ? ticket : []));
    const events = await router.read(refs.filter(({ projectId }) => !postponed.has(projectId)));
    const large = events.filter(({ data }) => data.length > BODY_AT_ONCE_MAX);
    for (const event of large) {
      apart.push(event, async () => {
        if (signal.aborted || (await work([event], routing)).size > 0) return;
        await queue.done(ticketsOf((ref) => ref?.id === event.id));
      });
    }
    const later = new Set(large.map(({ id }) => id));
    const small = events.filter(({ id }) => !later.has(id));
    for (const id of await work(small, routing)) later.add(id);
    await queue.done(
      ticketsOf((ref) => !ref || !(postponed.has(ref.projectId) || later.has(ref.id))),
    );
  });
  await apart.idle();
}

function queueIn({ kv, shard }: Pick<QueueOptions, 'kv' | 'shard'>, name: QueueKind): SignalQueue {
  return kv.queue(queueOf(name, shard.name));
}

async function pullFrom(
  name: QueueKind,
  options: Pick<QueueOptions, 'kv' | 'shard' | 'inFlight' | 'log'>,
  signal: AbortSignal,
  work: (signals: readonly Signal[], queue: SignalQueue) => Promise<void>,
): Promise<void> {
  const { inFlight, log } = options;
  const queue = queueIn(options, name);
  for (let failures = 0; !signal.aborted;) {
    try {
      if (!(await inFlight.waitForRoom(1_000))) continue;
      const signals = await queue.pull(Math.max(1, Math.min(BATCH_MAX, inFlight.room)), signal);
      if (signals.length > 0) await work(signals, queue);
      failures = 0;
    } catch (error) {
      if (signal.aborted) break;
      if (failures++ === 0)
        log.warn(
          { error, queue: name },
          'Could not process a queue; retrying. Events wait in Postgres.',
        );
      await new Promise((resolve) =>
        setTimeout(resolve, backoffMs(failures, { capMs: 5_000 })).unref(),
      );
    }
  }
}

/** One at a time per project, without delaying other projects. */
class LargeEvents {
  readonly #turns = new ProjectTurns();
  readonly #ids = new Set<string>();

  constructor(private readonly log: AgentContext['log']) {}

  /** Skips an event that is already waiting or if too many are: its signal is pulled again. */
  push({ projectId, id }: PendingEvent, route: () => Promise<void>): void {
    if (this.#ids.has(id) || this.#ids.size >= LARGE_MAX) return;
    this.#ids.add(id);
    const failed = (error: unknown) =>
      this.log.warn(
        { error, project_id: projectId, event_id: id },
        'Could not route a large event; will retry in ten seconds.',
      );
    void this.#turns
      .run(projectId, route)
      .catch(failed)
      .finally(() => this.#ids.delete(id));
  }

  idle(): Promise<void> {
    return this.#turns.idle();
  }
}
