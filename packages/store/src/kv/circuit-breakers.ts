import type { Kv } from './kv.js';
import { decodeValue } from './versions.js';

/** The shared state of an endpoint's circuit breaker; without a record it is closed. Times are by KV's clock. */
export interface BreakerRecord {
  readonly project_id: string;
  /** `half_open`: one request probes the endpoint. */
  readonly state: 'closed' | 'open' | 'half_open';
  /** Closed: when counting began. Otherwise: when it opened. */
  readonly since_ms: number;
  /** Closed: when counting restarts. Open: when it may be probed. Half-open: when another agent may probe. */
  readonly until_ms: number;
  /** Counted requests; unless closed, those that opened it. */
  readonly requests: number;
  readonly failures: number;
  readonly trips: number;
  readonly forget_ms: number;
  readonly by?: string;
}

/** Returns the records by endpoint id; an endpoint without one has a closed breaker. Rejects when KV is down. */
export async function readBreakers(kv: Kv): Promise<ReadonlyMap<string, BreakerRecord>> {
  const { entries } = await kv.map('breakers').all();
  return new Map(
    [...entries].flatMap(([endpointId, text]) => {
      const record = decodeValue<BreakerRecord>('breaker', text);
      return record ? [[endpointId, record]] : [];
    }),
  );
}

/** An endpoint's circuit breaker in the API and CLI. */
export interface BreakerView {
  readonly state: BreakerRecord['state'];
  readonly since: Date | null;
  /** Open: when the endpoint is probed. Half-open: deadline of the probe. */
  readonly until: Date | null;
  readonly requests: number;
  readonly failures: number;
}

/** Returns a closed breaker when there is no record. `since` and `until` are null while it is closed. */
export function breakerView(record: BreakerRecord | undefined): BreakerView {
  const { state = 'closed', since_ms: since = 0, until_ms: until = 0, requests = 0, failures = 0 } = record ?? {};
  const time = (ms: number) => (state === 'closed' ? null : new Date(ms));
  return { state, since: time(since), until: time(until), requests, failures };
}

/** Closes a breaker; agents notice within two seconds. False when it was closed. Rejects when KV is down. */
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
