import type { Attempt } from '../model/delivery.js';
import { entryBytes } from './next-batch.js';

export const BATCH_TYPE = 'application/vnd.gateway.batch+json';

type Entry = Pick<Attempt, 'delivery' | 'trace'>;

/** The data of each event has the bytes that it would have in a request of its own. */
export function batchBody(entries: readonly Entry[]): Buffer {
  const parts: Buffer[] = [];
  entries.forEach(({ delivery, trace }, k) => {
    const { id, eventType, occurredAtMs, headers: own, body } = delivery;
    const headers = trace ? { ...own, ...contextOf(trace) } : own;
    const head = {
      id,
      type: eventType,
      timestamp: new Date(occurredAtMs).toISOString(),
      ...(Object.keys(headers).length > 0 && { headers }),
    };
    const opening = k === 0 ? '{"events":[' : '},';
    parts.push(Buffer.from(`${opening}${JSON.stringify(head).slice(0, -1)},"data":`), body);
  });
  parts.push(Buffer.from('}]}'));
  return Buffer.concat(parts);
}

function contextOf({ traceparent, tracestate }: NonNullable<Entry['trace']>) {
  return { traceparent, ...(tracestate && { tracestate }) };
}

/** Functions may have made the data larger than one request may be. */
export function requestsOf(attempts: readonly Attempt[], maxBytes: number): Attempt[][] {
  const requests: Attempt[][] = [];
  let bytes = Infinity;
  for (const attempt of attempts) {
    const size = entryBytes(attempt.delivery);
    bytes += size;
    if (bytes <= maxBytes) {
      requests.at(-1)!.push(attempt);
      continue;
    }
    requests.push([attempt]);
    bytes = size;
  }
  return requests;
}
