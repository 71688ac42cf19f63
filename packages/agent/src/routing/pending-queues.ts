import { backoffMs } from '@gateway/core/process';
import { decodeSignal, encodeSignal, type EventRef, type PendingEvent } from '@gateway/store/events';
import type { QueueName } from '@gateway/store/kv';
import type { AgentContext } from '../config/agent-context.js';
import type { InFlight } from '../delivery/in-flight.js';
import { needsMatching } from '@gateway/core/routing';
import type { Routing } from '../telemetry/trace-message.js';
import type { PendingRouter } from './pending-router.js';
import { BODY_AT_ONCE_MAX } from './plan-deliveries.js';

const BATCH_MAX = 200;
/** Events with large bodies that wait here at a time; signals beyond are pulled again in ten seconds. */
const LARGE_MAX = 32;

export interface QueueOptions extends Pick<AgentContext, 'kv' | 'log' | 'tracing'> {
  readonly router: PendingRouter;
  readonly inFlight: Pick<InFlight, 'room' | 'waitForRoom'>;
}

/** Consumes the create-event queue: routes events that name their endpoints, and passes the others on to the match-subscriptions queue. */
export function consumeCreateEvent(options: QueueOptions, signal: AbortSignal): Promise<void> {
  return consume('create-event', options, signal, async (events, routing) => {
    const toMatch = events.filter(needsMatching);
    if (toMatch.length > 0) await options.kv.queue('match-subscriptions').push(toMatch.map(encodeSignal));
    options.tracing?.routing.passedOn(toMatch, routing);
    return options.router.route(
      events.filter((event) => !needsMatching(event)),
      routing,
    );
  });
}

/** Consumes the match-subscriptions queue: the slow half of routing, separate so that it does not hold up events that name their endpoints. */
export function consumeMatchSubscriptions(options: QueueOptions, signal: AbortSignal): Promise<void> {
  return consume('match-subscriptions', options, signal, (events, routing) => options.router.route(events, routing));
}

/**
 * Pulls only while there is room for new deliveries. Signals are done when the result is committed. Those of events that are left pending are not: they are pulled
 * again in ten seconds, by whichever agent.
 */
async function consume(
  name: QueueName,
  { kv, router, inFlight, log, tracing }: QueueOptions,
  signal: AbortSignal,
  work: (events: PendingEvent[], routing: Routing) => Promise<ReadonlySet<string>>,
): Promise<void> {
  const queue = kv.queue(name);
  const large = new LargeEvents();
  for (let failures = 0; !signal.aborted;) {
    try {
      if (!(await inFlight.waitForRoom(1_000))) continue;
      const signals = await queue.pull(Math.max(1, Math.min(BATCH_MAX, inFlight.room)), signal);
      if (signals.length === 0) continue;
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
      const later = new Set<string>();
      const small: PendingEvent[] = [];
      for (const event of await router.read(refs.filter(({ projectId }) => !postponed.has(projectId)))) {
        if (event.data.length <= BODY_AT_ONCE_MAX) {
          small.push(event);
          continue;
        }
        later.add(event.id);
        large.route(event, async () => {
          if (signal.aborted || (await work([event], routing)).size > 0) return;
          await queue.done(ticketsOf((ref) => ref?.id === event.id));
        });
      }
      for (const id of await work(small, routing)) later.add(id);
      await queue.done(ticketsOf((ref) => !ref || !(postponed.has(ref.projectId) || later.has(ref.id))));
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      if (failures++ === 0)
        log.warn({ error, queue: name }, 'A queue cannot be worked on; trying again. Events wait in Postgres meanwhile.');
      await new Promise((resolve) => setTimeout(resolve, backoffMs(failures, { capMs: 5_000 })).unref());
    }
  }
  await large.idle();
}

/** Events with large bodies, each project's one after the other: filters may have to parse them, for which the events of others do not wait. */
class LargeEvents {
  readonly #ids = new Set<string>();
  /** By project: the last of its events that wait. */
  readonly #last = new Map<string, Promise<void>>();

  /** Without effect when too many wait, or this one does. If `work` fails, the signal is pulled again. */
  route({ projectId, id }: PendingEvent, work: () => Promise<void>): void {
    if (this.#ids.has(id) || this.#ids.size >= LARGE_MAX) return;
    this.#ids.add(id);
    const done = (this.#last.get(projectId) ?? Promise.resolve())
      .then(work)
      .catch(() => undefined)
      .then(() => {
        this.#ids.delete(id);
        if (this.#last.get(projectId) === done) this.#last.delete(projectId);
      });
    this.#last.set(projectId, done);
  }

  async idle(): Promise<void> {
    await Promise.all(this.#last.values());
  }
}
