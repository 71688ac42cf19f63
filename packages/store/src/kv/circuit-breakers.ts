import type { Kv } from './kv.js';
import { decodeValue, encodeValue } from './versions.js';

/**
 * Shared by all agents. Without a record, a breaker is closed. Times are in epoch milliseconds of
 * KV's clock.
 */
export interface BreakerRecord {
  readonly project_id: string;
  /** In `half_open`, a single request probes the endpoint. */
  readonly state: 'closed' | 'open' | 'half_open';
  /** When the counting window started, if closed; else when the breaker opened. */
  readonly since_ms: number;
  /**
   * If closed, the end of the counting window; if open, the earliest probe; if half-open, when
   * another agent may probe.
   */
  readonly until_ms: number;
  /** Requests in the counting window or, unless closed, in the window that opened the breaker. */
  readonly requests: number;
  readonly failures: number;
  readonly trips: number;
  readonly forget_ms: number;
  readonly by?: string;
}

/**
 * By endpoint id, or of all tenants. Without a record, a breaker is closed. Rejects if KV is down.
 */
export async function readBreakers(
  kv: Kv,
  endpointIds?: readonly string[],
): Promise<ReadonlyMap<string, BreakerRecord>> {
  const map = kv.map('breakers');
  const { entries } = await (endpointIds ? map.some(endpointIds) : map.all());
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
  /** If open, the earliest probe; if half-open, the deadline of the probe. */
  readonly until: Date | null;
  readonly requests: number;
  readonly failures: number;
}

/**
 * For the API. Without a record, the breaker is closed. `since` and `until` are null while it is
 * closed.
 */
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

export interface BehindBreaker {
  readonly endpoint_id: string;
  readonly endpoint_name: string | null;
  readonly count: number;
  /** The earliest next request to the endpoint. */
  readonly until: Date | null;
}

/** Breakers that are not closed, with how many of the due deliveries wait for each. */
export function behindBreakers(
  due: readonly {
    readonly endpointId: string;
    readonly endpointName: string | null;
    readonly count: number;
  }[],
  breakerOf: (endpointId: string) => BreakerView | null,
): BehindBreaker[] {
  const found = new Map<string, BehindBreaker>();
  for (const { endpointId, endpointName, count } of due) {
    const breaker = breakerOf(endpointId);
    if (!breaker || breaker.state === 'closed') continue;
    found.set(endpointId, {
      endpoint_id: endpointId,
      endpoint_name: endpointName,
      count: (found.get(endpointId)?.count ?? 0) + count,
      until: breaker.until,
    });
  }
  return [...found.values()];
}

/** The longest time in which agents notice a changed record, apart from one millisecond a record. */
const NOTICED_MS = 1_500;

/**
 * Makes an open breaker due for its probe now. Returns the time after which all agents know, until
 * when they postpone what is due, or 0 if the breaker is not open or the endpoint belongs to another
 * project. Rejects if KV is down.
 */
export async function hastenProbe(
  kv: Kv,
  { projectId, endpointId }: { readonly projectId?: string; readonly endpointId: string },
): Promise<number> {
  const map = kv.map('breakers');
  for (;;) {
    const { entries, nowMs, size } = await map.some([endpointId]);
    const text = entries.get(endpointId);
    const record = decodeValue<BreakerRecord>('breaker', text);
    if (record?.state !== 'open') return 0;
    if (projectId !== undefined && record.project_id !== projectId) return 0;
    const noticedMs = NOTICED_MS + size;
    if (record.until_ms <= nowMs) return noticedMs;
    const to = encodeValue('breaker', { ...record, until_ms: nowMs });
    const [done] = await map.change([{ field: endpointId, from: text, to }]);
    if (done) return noticedMs;
  }
}

/**
 * Closes a breaker, which agents notice within two seconds. Returns false if it was already closed.
 * Rejects if KV is down.
 */
export async function resetBreaker(kv: Kv, endpointId: string): Promise<boolean> {
  const map = kv.map('breakers');
  for (;;) {
    const { entries } = await map.some([endpointId]);
    const text = entries.get(endpointId);
    if (text === undefined) return false;
    const [done] = await map.change([{ field: endpointId, from: text, to: undefined }]);
    if (done) return decodeValue<BreakerRecord>('breaker', text)?.state !== 'closed';
  }
}
