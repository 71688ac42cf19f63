import type { Kv } from './kv.js';

/** What all processes know of the circuit breaker of an endpoint. An endpoint without a record has a breaker that is closed. Times are by the clock of KV. */
export interface BreakerRecord {
  readonly project_id: string;
  /** `half_open`: one request is under way that decides whether it closes. */
  readonly state: 'closed' | 'open' | 'half_open';
  /** Closed: when the counting began. Else: when it opened, however often it was probed since. */
  readonly since_ms: number;
  /** Closed: when the counting begins anew. Open: when it may be probed. Half-open: when somebody else may probe. */
  readonly until_ms: number;
  /** Requests that were counted, those that opened it when it is not closed. */
  readonly requests: number;
  readonly failures: number;
  /** How often it opened without having been closed for long in between. */
  readonly trips: number;
  /** When those are forgotten. */
  readonly forget_ms: number;
  /** Who probes. */
  readonly by?: string;
}

/** The breakers of all endpoints that are not simply closed, by endpoint id. One command; rejects when KV is away. */
export async function readBreakers(kv: Kv): Promise<ReadonlyMap<string, BreakerRecord>> {
  const { entries } = await kv.map('breakers').all();
  return new Map([...entries].map(([endpointId, text]) => [endpointId, JSON.parse(text) as BreakerRecord]));
}

/** The circuit breaker of an endpoint, for a person. */
export interface BreakerView {
  readonly state: BreakerRecord['state'];
  /** Since when it is not closed. */
  readonly since: Date | null;
  /** Open: when the endpoint is tried again. Half-open: until when an answer is waited for. */
  readonly until: Date | null;
  /** Requests, and failures among them: those that opened it, or that are counted now. */
  readonly requests: number;
  readonly failures: number;
}

/** What a record says, or that there is none. */
export function breakerView(record: BreakerRecord | undefined): BreakerView {
  const { state = 'closed', since_ms: since = 0, until_ms: until = 0, requests = 0, failures = 0 } = record ?? {};
  const time = (ms: number) => (state === 'closed' ? null : new Date(ms));
  return { state, since: time(since), until: time(until), requests, failures };
}

/** Closes the breaker of an endpoint: agents learn of it within a second or two. False when it was closed. Rejects when KV is away. */
export async function resetBreaker(kv: Kv, endpointId: string): Promise<boolean> {
  const map = kv.map('breakers');
  for (;;) {
    const { entries } = await map.all();
    const text = entries.get(endpointId);
    if (text === undefined) return false;
    const [done] = await map.change([{ field: endpointId, from: text, to: undefined }]);
    if (done) return (JSON.parse(text) as BreakerRecord).state !== 'closed';
  }
}
