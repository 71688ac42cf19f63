import type { Log } from '@gateway/core/logging';
import { backoffMs } from '@gateway/core/process';
import { decodeSignal, encodeSignal, type PendingEvent } from '@gateway/store/events';
import type { Kv, QueueName } from '@gateway/store/kv';
import type { InFlight } from '../delivery/in-flight.js';
import { needsMatching } from '../model/routing.js';
import type { Routing } from '../telemetry/trace-message.js';
import type { Tracing } from '../telemetry/tracing.js';
import type { PendingRouter } from './pending-router.js';

const BATCH_MAX = 200;

export interface QueueOptions {
  readonly kv: Kv;
  readonly router: PendingRouter;
  readonly inFlight: Pick<InFlight, 'room' | 'waitForRoom'>;
  readonly log: Log;
  readonly tracing?: Pick<Tracing, 'routing'> | undefined;
}

/**
 * Consumes the create-event queue: events whose endpoints the message named get their deliveries; the others go on to the
 * match-subscriptions queue. Runs until the signal aborts.
 */
export function consumeCreateEvent(options: QueueOptions, signal: AbortSignal): Promise<void> {
  return consume('create-event', options, signal, async (events, routing) => {
    const toMatch = events.filter(needsMatching);
    if (toMatch.length > 0) await options.kv.queue('match-subscriptions').push(toMatch.map(encodeSignal));
    options.tracing?.routing.passedOn(toMatch, routing);
    await options.router.route(
      events.filter((event) => !needsMatching(event)),
      routing,
    );
  });
}

/** Consumes the match-subscriptions queue: the slow half of routing, separate so that it does not hold up events that name their endpoints. */
export function consumeMatchSubscriptions(options: QueueOptions, signal: AbortSignal): Promise<void> {
  return consume('match-subscriptions', options, signal, (events, routing) => options.router.route(events, routing));
}

/** Pulls only while there is room for new deliveries. Signals are done when the result is committed. */
async function consume(
  name: QueueName,
  { kv, router, inFlight, log, tracing }: QueueOptions,
  signal: AbortSignal,
  work: (events: PendingEvent[], routing: Routing) => Promise<void>,
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
      await work(await router.read(refs), { by: name, since });
      await queue.done(signals.map(({ ticket }) => ticket));
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      if (failures++ === 0)
        log.warn({ error, queue: name }, 'A queue cannot be worked on; trying again. Events wait in Postgres meanwhile.');
      await new Promise((resolve) => setTimeout(resolve, backoffMs(failures, { capMs: 5_000 })).unref());
    }
  }
}
