import type { Kv } from './kv.js';
import { decodeValue, encodeValue } from './versions.js';

/** Shared by all agents. Times are in epoch milliseconds of KV's clock. */
export interface BreakerRecord {
  readonly project_id: string;
  /** In `half_open`, a single request probes the endpoint. */
  readonly state: 'closed' | 'open' | 'half_open';
  /** The start of the counting window if closed, else when the breaker opened. */
  readonly since_ms: number;
  /**
   * The end of the counting window if closed, the earliest probe if open, and when another agent
   * may probe if half-open.
   */
  readonly until_ms: number;
  /** Unless closed, in the window that opened the breaker. */
  readonly requests: number;
  readonly failures: number;
  readonly trips: number;
  readonly forget_ms: number;
  readonly by?: string;
  /** The endpoint asked to be called later. Independent of the state. */
  readonly back_off?: { readonly until_ms: number; readonly ms: number };
}

/**
 * By endpoint id; by default, all. Without a record, a breaker is closed. Rejects if KV is down.
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
  readonly until: Date | null;
  readonly requests: number;
  readonly failures: number;
  /** Until when the endpoint asked not to be called. Null if it did not ask, or the time is over. */
  readonly back_off_until: Date | null;
}

/** For the API. `since` and `until` are null while it is closed. */
export function breakerView(record: BreakerRecord | undefined): BreakerView {
  const {
    state = 'closed',
    since_ms: since = 0,
    until_ms: until = 0,
    requests = 0,
    failures = 0,
    back_off: backOff,
  } = record ?? {};
  const time = (ms: number) => (state === 'closed' ? null : new Date(ms));
  const backsOff = backOff !== undefined && backOff.until_ms > Date.now();
  return {
    state,
    since: time(since),
    until: time(until),
    requests,
    failures,
    back_off_until: backsOff ? new Date(backOff.until_ms) : null,
  };
}

/** Agents notice a changed record within this time, and one millisecond a record. */
const NOTICED_MS = 1_500;

/**
 * Makes an open breaker due for its probe now. Returns the time after which all agents know, until
 * when they postpone what is due; 0 if it is not open or belongs to another project. Rejects if KV
 * is down.
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

/** Agents notice it within two seconds. False if it was already closed. Rejects if KV is down. */
export async function resetBreaker(kv: Kv, endpointId: string): Promise<boolean> {
  const map = kv.map('breakers');
  for (;;) {
    const { entries } = await map.some([endpointId]);
    const text = entries.get(endpointId);
    if (text === undefined) return false;
    const [done] = await map.change([{ field: endpointId, from: text, to: undefined }]);
    if (!done) continue;
    const record = decodeValue<BreakerRecord>('breaker', text);
    return record?.state !== 'closed' || record.back_off !== undefined;
  }
}
