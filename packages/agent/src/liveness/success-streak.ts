import type { AttemptRecord } from '@gateway/store/deliveries';

/** Consecutive failed attempts, over at least `FAILING_MS`, that count as an outage. */
const ATTEMPTS = 20;
const FAILING_MS = 10_000;
/**
 * A streak ends after this time without an attempt. It exceeds the open time of a circuit breaker,
 * during which there are no attempts.
 */
const FORGET_MS = 900_000;
const ENDPOINTS_MAX = 1_000;

interface Streak {
  readonly since: Date;
  attempts: number;
  readonly endpoints: Set<string>;
  lastAtMs: number;
}

/** If no attempt to any endpoint succeeds, the fault is most likely in the local network. */
export class SuccessStreak {
  #streak: Streak | undefined;

  recorded(
    attempts: readonly Pick<
      AttemptRecord,
      'status' | 'endpointId' | 'requestedAtMs' | 'durationMs'
    >[],
  ): void {
    for (const { status, endpointId, requestedAtMs, durationMs } of attempts) {
      if (status === 'success') {
        this.#streak = undefined;
        continue;
      }
      this.#streak ??= {
        since: new Date(requestedAtMs),
        attempts: 0,
        endpoints: new Set(),
        lastAtMs: 0,
      };
      const streak = this.#streak;
      streak.attempts++;
      streak.lastAtMs = Math.max(streak.lastAtMs, requestedAtMs + durationMs);
      if (streak.endpoints.size < ENDPOINTS_MAX) streak.endpoints.add(endpointId);
    }
  }

  /** With a readable description. */
  outage(nowMs: number): { since: Date; reason: string } | null {
    const streak = this.#streak;
    if (!streak || streak.attempts < ATTEMPTS) return null;
    if (
      streak.lastAtMs - streak.since.getTime() < FAILING_MS ||
      nowMs - streak.lastAtMs > FORGET_MS
    )
      return null;
    const { size } = streak.endpoints;
    const to =
      size === 1
        ? 'one endpoint'
        : `${size < ENDPOINTS_MAX ? size : `${ENDPOINTS_MAX} or more`} endpoints`;
    return {
      since: streak.since,
      reason: `No delivery succeeds: every attempt, to ${to}, has failed. Deliveries wait for their next attempt in Postgres. Look at the errors of the attempts, and at the way out of this machine (name service, proxy, firewall)`,
    };
  }
}
