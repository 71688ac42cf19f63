import { backoffMs } from '@gateway/core/process';
import { decodeSignal, encodeSignal, type EventRef, type PendingEvent } from '@gateway/store/events';
import type { QueueName } from '@gateway/store/kv';
import type { AgentContext } from '../config/agent-context.js';
import type { InFlight } from '../delivery/in-flight.js';
import { needsMatching } from '@gateway/core/routing';
import type { Routing } from '../telemetry/trace-message.js';
import type { PendingRouter } from './pending-router.js';

const BATCH_MAX = 200;

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
      const left = await work(await router.read(refs.filter(({ projectId }) => !postponed.has(projectId))), { by: name, since });
      const isDone = (ref: EventRef | null) => !ref || !(postponed.has(ref.projectId) || left.has(ref.id));
      await queue.done(signals.filter(({ text }) => isDone(decodeSignal(text))).map(({ ticket }) => ticket));
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      if (failures++ === 0)
        log.warn({ error, queue: name }, 'A queue cannot be worked on; trying again. Events wait in Postgres meanwhile.');
      await new Promise((resolve) => setTimeout(resolve, backoffMs(failures, { capMs: 5_000 })).unref());
    }
  }
}
