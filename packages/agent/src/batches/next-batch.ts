import type { Endpoint } from '@gateway/ingest/routing/project';
import type { EndpointQueue, QueuesInFlight } from '../flow-control/endpoint-queue.js';
import type { InFlightDelivery } from '../model/delivery.js';

/** The size of an entry without headers, besides data and type. */
const ENVELOPE_BYTES = 120;

export function entryBytes({ body, eventType }: InFlightDelivery): number {
  return body.length + eventType.length + ENVELOPE_BYTES;
}

/** Decides when enough deliveries of an endpoint wait for a batch. */
export class BatchCollector {
  readonly #timers = new WeakMap<EndpointQueue, NodeJS.Timeout>();

  constructor(private readonly inFlight: Pick<QueuesInFlight, 'isReserve' | 'wake'>) {}

  /**
   * Returns whether the queue should wait for more deliveries, and wakes it when it has waited
   * for long enough. While memory for deliveries is short, nothing waits.
   */
  isCollecting(queue: EndpointQueue, endpoint: Endpoint): boolean {
    const { max_wait_ms: waitMs } = endpoint.batch!;
    const first = queue.at(0);
    if (!first || this.inFlight.isReserve || endpoint.status !== 'active') return false;
    const leftMs = waitMs - (performance.now() - (first.queuedAtMs ?? 0));
    if (leftMs <= 0 || lengthOfBatch(queue, endpoint).isFull) return false;
    clearTimeout(this.#timers.get(queue));
    const wake = () => this.inFlight.wake(queue.endpointId);
    this.#timers.set(queue, setTimeout(wake, Math.ceil(leftMs)).unref());
    return true;
  }
}

export function takeBatch(queue: EndpointQueue, endpoint: Endpoint): InFlightDelivery[] {
  return Array.from({ length: lengthOfBatch(queue, endpoint).count }, () => queue.shift()!);
}

function lengthOfBatch(
  queue: EndpointQueue,
  endpoint: Endpoint,
): { readonly count: number; readonly isFull: boolean } {
  const { max_events: most, max_bytes: mostBytes } = endpoint.batch!;
  let bytes = 0;
  for (let count = 0; count < most; count++) {
    const delivery = queue.at(count);
    if (!delivery) return { count, isFull: false };
    bytes += entryBytes(delivery);
    const isAlone = goesAlone(delivery, endpoint);
    if (count > 0 && (isAlone || bytes > mostBytes)) return { count, isFull: true };
    if (isAlone || bytes >= mostBytes) return { count: count + 1, isFull: true };
  }
  return { count: most, isFull: true };
}

/**
 * The last retry, so that an event that the receiver cannot take does not use up all attempts of
 * the others. A delivery with an order key, so that only its own answer decides whether the next
 * one is sent.
 */
function goesAlone(
  { attempts, orderKey }: InFlightDelivery,
  { strategy: { retry_count: retries } }: Endpoint,
): boolean {
  return orderKey !== null || (attempts > 0 && attempts >= retries);
}
