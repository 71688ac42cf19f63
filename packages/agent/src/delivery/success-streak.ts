import type { AttemptRecord } from '@gateway/store/deliveries';

/** So many attempts, over so long, of which none succeeded, say more than that an endpoint is away. */
const ATTEMPTS = 20;
const FAILING_MS = 10_000;
/** Without an attempt for this long, nobody knows any more. Longer than a circuit breaker stays open. */
const FORGET_MS = 900_000;
/** Endpoints that are told apart. */
const ENDPOINTS_MAX = 1_000;

interface Streak {
  readonly since: Date;
  attempts: number;
  readonly endpoints: Set<string>;
  lastAtMs: number;
}

/** Whether anything is delivered at all: when no attempt to any endpoint succeeds, the way out of this machine is the likelier culprit. */
export class SuccessStreak {
  #streak: Streak | undefined;

  /** Takes attempts that have ended. */
  recorded(attempts: readonly Pick<AttemptRecord, 'status' | 'endpointId' | 'requestedAtMs' | 'durationMs'>[]): void {
    for (const { status, endpointId, requestedAtMs, durationMs } of attempts) {
      if (status === 'success') {
        this.#streak = undefined;
        continue;
      }
      this.#streak ??= { since: new Date(requestedAtMs), attempts: 0, endpoints: new Set(), lastAtMs: 0 };
      const streak = this.#streak;
      streak.attempts++;
      streak.lastAtMs = Math.max(streak.lastAtMs, requestedAtMs + durationMs);
      if (streak.endpoints.size < ENDPOINTS_MAX) streak.endpoints.add(endpointId);
    }
  }

  /** Since when nothing was delivered although it was tried, and in words; null when something was, or when nobody has tried for long. */
  trouble(nowMs: number): { since: Date; reason: string } | null {
    const streak = this.#streak;
    if (!streak || streak.attempts < ATTEMPTS) return null;
    if (streak.lastAtMs - streak.since.getTime() < FAILING_MS || nowMs - streak.lastAtMs > FORGET_MS) return null;
    const { size } = streak.endpoints;
    const to = size === 1 ? 'one endpoint' : `${size < ENDPOINTS_MAX ? size : `${ENDPOINTS_MAX} or more`} endpoints`;
    return {
      since: streak.since,
      reason: `No delivery succeeds: every attempt, to ${to}, has failed. Deliveries wait for their next attempt in Postgres. Look at the errors of the attempts, and at the way out of this machine (name service, proxy, firewall).`,
    };
  }
}
