import type { Kv } from './kv.js';
import { decodeValue } from './versions.js';

/** Shared state of a circuit breaker; without a record it is closed. Times are by KV's clock. */
export interface BreakerRecord {
  readonly project_id: string;
  /** `half_open`: one request probes the endpoint. */
  readonly state: 'closed' | 'open' | 'half_open';
  /** Closed: start of counting. Otherwise: when it opened. */
  readonly since_ms: number;
  /** Closed: end of counting. Open: earliest probe. Half-open: when another agent can probe. */
  readonly until_ms: number;
  /** Counted requests; unless closed, those that opened it. */
  readonly requests: number;
  readonly failures: number;
  readonly trips: number;
  readonly forget_ms: number;
  readonly by?: string;
}

/**
 * Returns the records by endpoint id; without one, the breaker is closed. Rejects when KV is down.
 */
export async function readBreakers(kv: Kv): Promise<ReadonlyMap<string, BreakerRecord>> {
  const { entries } = await kv.map('breakers').all();
  return new Map(
    [...entries].flatMap(([endpointId, text]) => {
      const record = decodeValue<BreakerRecord>('breaker', text);
      return record ? [[endpointId, record]] : [];
    }),
  );
}

export interface BreakerView {
  readonly state: BreakerRecord['state'];
  readonly since: Date | null;
  /** Open: earliest probe. Half-open: deadline of the probe. */
  readonly until: Date | null;
  readonly requests: number;
  readonly failures: number;
}

/** Returns a closed breaker without a record. `since` and `until` are null while closed. */
export function breakerView(record: BreakerRecord | undefined): BreakerView {
  const {
    state = 'closed',
    since_ms: since = 0,
    until_ms: until = 0,
    requests = 0,
    failures = 0,
  } = record ?? {};
  const time = (ms: number) => (state === 'closed' ? null : new Date(ms));
  return { state, since: time(since), until: time(until), requests, failures };
}

/**
 * Closes a breaker; agents notice within two seconds. False when it was closed. Rejects when KV is
 * down.
 */
export async function resetBreaker(kv: Kv, endpointId: string): Promise<boolean> {
  const map = kv.map('breakers');
  for (;;) {
    const { entries } = await map.all();
    const text = entries.get(endpointId);
    if (text === undefined) return false;
    const [done] = await map.change([{ field: endpointId, from: text, to: undefined }]);
    if (done) return decodeValue<BreakerRecord>('breaker', text)?.state !== 'closed';
  }
}
