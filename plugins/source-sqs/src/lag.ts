import type { SourceContext } from '@gateway/plugin';
import { pause, untilAborted } from './abort.js';
import type { Queue } from './queue.js';

/** The queue updates its own count about this often, and each request is paid for. */
const REPORT_EVERY_MS = 10_000;
/** A queue has no partitions. */
const QUEUE = '';

/** Reports now and then, if there is `lag`, how many messages wait. Returns a function that stops this and reports null. */
export function reportLag(queue: Pick<Queue, 'waiting'>, { lag, log }: Pick<SourceContext, 'lag' | 'log'>): () => Promise<void> {
  if (!lag) return () => Promise.resolve();
  const stopping = new AbortController();
  const { signal } = stopping;
  const reporting = (async () => {
    while (!signal.aborted) {
      try {
        const waiting = await untilAborted(signal, (request) => queue.waiting(request));
        if (waiting !== undefined && !signal.aborted) lag(QUEUE, waiting);
      } catch (error) {
        log.debug({ error }, 'the number of waiting messages could not be fetched');
        lag(QUEUE, null);
      }
      await pause(REPORT_EVERY_MS, signal);
    }
  })();
  return async () => {
    stopping.abort();
    await reporting;
    lag(QUEUE, null);
  };
}
