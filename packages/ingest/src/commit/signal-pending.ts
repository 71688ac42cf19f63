import type { Log } from '@gateway/core/logging';
import { encodeSignal, type EventRef } from '@gateway/store/events';
import type { Kv } from '@gateway/store/kv';

/** Signals pending events. Resolves even if KV is down: a heartbeat finds the events. */
export async function signalPending(
  { kv, log }: { readonly kv: Pick<Kv, 'queue'>; readonly log: Pick<Log, 'warn'> },
  events: readonly Pick<EventRef, 'projectId' | 'id'>[],
): Promise<void> {
  if (events.length === 0) return;
  try {
    await kv.queue('create-event').push(events.map(encodeSignal));
  } catch (error) {
    log.warn(
      { error, events: events.length },
      'KV is away: agents find pending events in Postgres, a few seconds later.',
    );
  }
}
