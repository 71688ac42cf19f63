import type { BreakerRecord } from '@gateway/store/kv';
import type { BreakerPolicy } from '../config/breaker-policy.js';

/**
 * A window ends after at least this many requests, so that a million successes do not hide
 * failures.
 */
const WINDOW_REQUESTS = 100;
/**
 * A trip is remembered after its open time for this multiple of it. If the breaker opens again
 * meanwhile, its open time doubles.
 */
const REMEMBERED = 2;
/** Without `Retry-After`. It doubles while back-offs follow each other closely. */
const BACK_OFF_MS = 1_000;
const BACK_OFF_MAX_MS = 60_000;
const RETRY_AFTER_MAX_MS = 24 * 3_600_000;

export function windowRequests({ minimumRequests }: BreakerPolicy): number {
  return Math.max(WINDOW_REQUESTS, 2 * minimumRequests);
}

/** Opens the breaker if too many requests failed. All times in this file are on the KV clock. */
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
    ...(record?.back_off && { back_off: record.back_off }),
  };
  const fails =
    sum.requests >= policy.minimumRequests && sum.failures >= sum.requests * policy.threshold;
  return fails ? openBreaker(sum, policy, nowMs) : sum;
}

/**
 * After too many failures or a failed probe. Each remembered trip doubles the open time, up to
 * `openMaxMs`.
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
 * To the agent `by`, for `leaseMs`. Undefined if the breaker is closed, its open time is not over,
 * or another probe is in flight.
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
 * After a good probe. Trips are remembered for a while, so that the breaker opens for longer if it
 * soon trips again.
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

/**
 * After an answer that asks for fewer requests. Undefined if the endpoint already backs off for as
 * long: answers of requests that were under way when the back-off began do not double it.
 *
 * @param askedMs the `Retry-After`, or null if there was none
 */
export function backOff(
  record: BreakerRecord | undefined,
  projectId: string,
  askedMs: number | null,
  { windowMs }: BreakerPolicy,
  nowMs: number,
): BreakerRecord | undefined {
  const last = record?.back_off;
  if (askedMs === null && last && nowMs < last.until_ms) return undefined;
  const isRepeated = last !== undefined && nowMs < last.until_ms + REMEMBERED * last.ms;
  const ms =
    askedMs === null
      ? Math.min(isRepeated ? 2 * last.ms : BACK_OFF_MS, BACK_OFF_MAX_MS)
      : Math.min(askedMs, RETRY_AFTER_MAX_MS);
  const untilMs = nowMs + ms;
  if (ms <= 0 || (last && untilMs <= last.until_ms)) return undefined;
  const noRequests = {
    project_id: projectId,
    state: 'closed',
    since_ms: nowMs,
    until_ms: nowMs + windowMs,
    requests: 0,
    failures: 0,
    trips: 0,
    forget_ms: 0,
  } as const;
  return { ...(record ?? noRequests), back_off: { until_ms: untilMs, ms } };
}

/** The record has no further effect and can be removed. */
export function isSpent(
  { state, until_ms, forget_ms, back_off: last }: BreakerRecord,
  nowMs: number,
): boolean {
  const untilMs = Math.max(until_ms, forget_ms, last ? last.until_ms + REMEMBERED * last.ms : 0);
  return state === 'closed' && nowMs >= untilMs;
}
