import type { BreakerRecord } from '@gateway/store/kv';
import type { BreakerPolicy } from '../config/breaker-policy.js';

/**
 * The minimum number of requests after which a window ends, so that a million successes do not hide
 * failures.
 */
const WINDOW_REQUESTS = 100;
/**
 * How long a trip is remembered after its open time, as a multiple of that time. If the breaker
 * opens again while it is remembered, its open time doubles.
 */
const REMEMBERED = 2;

/**
 * Returns the number of requests after which a window ends: 100, or twice `minimumRequests` if
 * greater.
 */
export function windowRequests({ minimumRequests }: BreakerPolicy): number {
  return Math.max(WINDOW_REQUESTS, 2 * minimumRequests);
}

/**
 * Adds requests to a closed breaker and opens it if too many of them failed. All times in this file
 * are on the KV clock.
 */
export function countRequests(
  record: BreakerRecord | undefined,
  {
    projectId,
    requests,
    failures,
  }: { readonly projectId: string; readonly requests: number; readonly failures: number },
  policy: BreakerPolicy,
  nowMs: number,
): BreakerRecord {
  if (record && record.state !== 'closed') return record;
  const isCurrent =
    record !== undefined && nowMs < record.until_ms && record.requests < windowRequests(policy);
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
  const fails =
    sum.requests >= policy.minimumRequests && sum.failures >= sum.requests * policy.threshold;
  return fails ? openBreaker(sum, policy, nowMs) : sum;
}

/**
 * Opens the breaker after too many failures or a failed probe. Each remembered trip doubles the
 * open time, up to `openMaxMs`.
 */
export function openBreaker(
  record: BreakerRecord,
  { openMs, openMaxMs }: BreakerPolicy,
  nowMs: number,
): BreakerRecord {
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

/**
 * Grants the probe to the agent `by` for `leaseMs`. Returns undefined if the breaker is closed, its
 * open time is not over, or another probe is in flight.
 */
export function grantProbe(
  record: BreakerRecord,
  by: string,
  leaseMs: number,
  nowMs: number,
): BreakerRecord | undefined {
  if (record.state === 'closed' || nowMs < record.until_ms) return undefined;
  return { ...record, state: 'half_open', until_ms: nowMs + leaseMs, by };
}

/**
 * Closes the breaker after a good probe. Its trips are remembered for a while, so that it opens for
 * longer if it soon trips again.
 */
export function closeBreaker(
  record: BreakerRecord,
  { windowMs }: BreakerPolicy,
  nowMs: number,
): BreakerRecord {
  const { by: _, ...rest } = record;
  const forgetMs = Math.max(record.forget_ms, nowMs + windowMs);
  return {
    ...rest,
    state: 'closed',
    since_ms: nowMs,
    until_ms: nowMs + windowMs,
    requests: 0,
    failures: 0,
    forget_ms: forgetMs,
  };
}

/** Whether a record has no further effect and can be removed. */
export function isSpent({ state, until_ms, forget_ms }: BreakerRecord, nowMs: number): boolean {
  return state === 'closed' && nowMs >= until_ms && nowMs >= forget_ms;
}
