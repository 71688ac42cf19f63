import type { Log } from '@gateway/core/logging';
import { encodeSignal, type EventRef } from '@gateway/store/events';
import { type Kv, queueOf } from '@gateway/store/kv';

/** Resolves even if KV is down: a heartbeat finds the events. */
export async function signalPending(
  {
    kv,
    log,
    shard,
  }: {
    readonly kv: Pick<Kv, 'queue'>;
    readonly log: Pick<Log, 'warn'>;
    readonly shard: string;
  },
  events: readonly Pick<EventRef, 'projectId' | 'id'>[],
): Promise<void> {
  if (events.length === 0) return;
  try {
    await kv.queue(queueOf('create-event', shard)).push(events.map(encodeSignal));
  } catch (error) {
    log.warn(
      { error, events: events.length },
      'KV is unavailable: agents will find pending events in Postgres within seconds.',
    );
  }
}
