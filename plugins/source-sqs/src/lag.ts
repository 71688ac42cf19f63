import type { SourceContext } from '@gateway/plugin';
import { cancellable, pause } from './cancellable.js';
import type { Queue } from './queue.js';

/** The queue counts about this often itself, and each look is a request that is paid for. */
const LOOK_EVERY_MS = 10_000;
/** A queue has no partitions. */
const WHOLE = '';

/**
 * Tells, now and from time to time, how many messages the queue says are waiting; asks for nothing when nobody wants to know. A look that fails makes the number
 * unknown and disturbs nothing else.
 *
 * @returns what ends that, and forgets the number
 */
export function tellLag(queue: Pick<Queue, 'waiting'>, { lag, log }: Pick<SourceContext, 'lag' | 'log'>): () => Promise<void> {
  if (!lag) return () => Promise.resolve();
  const ending = new AbortController();
  const { signal } = ending;
  const telling = (async () => {
    while (!signal.aborted) {
      try {
        const waiting = await cancellable(signal, (look) => queue.waiting(look));
        if (waiting !== undefined && !signal.aborted) lag(WHOLE, waiting);
      } catch (error) {
        log.debug({ error }, 'the queue did not tell how much is waiting');
        lag(WHOLE, null);
      }
      await pause(LOOK_EVERY_MS, signal);
    }
  })();
  return async () => {
    ending.abort();
    await telling;
    lag(WHOLE, null);
  };
}
