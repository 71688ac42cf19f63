import type { BreakerRecord } from '@gateway/store/kv';
import type { FailureClass } from '../request/classify-error.js';

/** When a breaker opens, and for how long. */
export interface BreakerPolicy {
  /** Share of the requests that fail, 0 to 1. */
  readonly threshold: number;
  readonly minimumRequests: number;
  readonly windowMs: number;
  /** Until the first probe; twice as long with each further trip. */
  readonly openMs: number;
  readonly openMaxMs: number;
}

/** With so many requests in a window a new one begins: an endpoint that has answered a million times well may fail all the same. */
const WINDOW_REQUESTS = 100;
/** A trip is remembered for as long as its breaker was open, so many times over: one that opens again soon stays open longer. */
const REMEMBERED = 2;

/** What an answer says of its endpoint; null: nothing, for it was not reached through no fault of its own. */
export function verdictOf({
  errorClass,
  httpStatus,
}: {
  readonly errorClass: string | null;
  readonly httpStatus: number | null;
}): 'good' | 'bad' | null {
  switch (errorClass as FailureClass | null) {
    case 'refused_address':
    case 'unsendable':
    case 'proxy':
      return null;
    case null:
      return 'good';
    // Whoever answers a request with 4xx is there, except that 408 and 429 ask for patience.
    case 'status':
      return httpStatus !== null && (httpStatus >= 500 || httpStatus === 429 || httpStatus === 408) ? 'bad' : 'good';
    default:
      return 'bad';
  }
}

/** Requests with which a window is full, before its time is over. */
export function windowRequests({ minimumRequests }: BreakerPolicy): number {
  return Math.max(WINDOW_REQUESTS, 2 * minimumRequests);
}

/**
 * Adds requests to what is counted, which may open the breaker. One that is not closed stays as it is.
 *
 * @param nowMs by the clock of KV, as all times here
 */
export function counted(
  record: BreakerRecord | undefined,
  { projectId, requests, failures }: { readonly projectId: string; readonly requests: number; readonly failures: number },
  policy: BreakerPolicy,
  nowMs: number,
): BreakerRecord {
  if (record && record.state !== 'closed') return record;
  const isCurrent = record !== undefined && nowMs < record.until_ms && record.requests < windowRequests(policy);
  const sum: BreakerRecord = {
    project_id: projectId,
    state: 'closed',
    since_ms: isCurrent ? record.since_ms : nowMs,
    until_ms: isCurrent ? record.until_ms : nowMs + policy.windowMs,
    requests: (isCurrent ? record.requests : 0) + requests,
    failures: (isCurrent ? record.failures : 0) + failures,
    trips: record && nowMs < record.forget_ms ? record.trips : 0,
    forget_ms: record?.forget_ms ?? 0,
  };
  const fails = sum.requests >= policy.minimumRequests && sum.failures >= sum.requests * policy.threshold;
  return fails ? opened(sum, policy, nowMs) : sum;
}

/** The breaker after it has opened, or after a probe has failed: open for twice as long as the last time. */
export function opened(record: BreakerRecord, { openMs, openMaxMs }: BreakerPolicy, nowMs: number): BreakerRecord {
  const { by: _, ...rest } = record;
  const ms = Math.min(openMaxMs, openMs * 2 ** Math.min(record.trips, 30));
  return {
    ...rest,
    state: 'open',
    since_ms: record.state === 'closed' ? nowMs : record.since_ms,
    until_ms: nowMs + ms,
    trips: record.trips + 1,
    forget_ms: nowMs + ms * (1 + REMEMBERED),
  };
}

/** The breaker while `by` probes, for a while at most; undefined when it is not the time for a probe, or somebody else's is under way. */
export function probing(record: BreakerRecord, by: string, leaseMs: number, nowMs: number): BreakerRecord | undefined {
  if (record.state === 'closed' || nowMs < record.until_ms) return undefined;
  return { ...record, state: 'half_open', until_ms: nowMs + leaseMs, by };
}

/** The breaker after a good probe: closed, and open for longer if it soon opens again. */
export function closed(record: BreakerRecord, { windowMs }: BreakerPolicy, nowMs: number): BreakerRecord {
  const { by: _, ...rest } = record;
  const forgetMs = Math.max(record.forget_ms, nowMs + windowMs);
  return { ...rest, state: 'closed', since_ms: nowMs, until_ms: nowMs + windowMs, requests: 0, failures: 0, forget_ms: forgetMs };
}

/** True for a record that says nothing any more: its window is over, and no trip is remembered. */
export function isSpent({ state, until_ms, forget_ms }: BreakerRecord, nowMs: number): boolean {
  return state === 'closed' && nowMs >= until_ms && nowMs >= forget_ms;
}
