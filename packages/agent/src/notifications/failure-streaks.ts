import type { AttemptRecord } from '@gateway/store/deliveries';

/** Consecutive failed attempts of an endpoint that this agent made. */
export interface FailureStreak {
  readonly projectId: string;
  readonly endpointId: string;
  failures: number;
  readonly sinceMs: number;
  /** Of the last attempt. */
  error: string;
}

/** A 410 disables the endpoint, which has a notification of its own. */
const GONE = 410;

/** Counts consecutive failed attempts by endpoint. Only failing endpoints take memory: a success costs two look-ups in mostly empty maps. */
export class FailureStreaks {
  readonly #threshold: number;
  readonly #streaks = new Map<string, FailureStreak>();
  /** Endpoints with an open notification, of this agent or another. */
  readonly notified = new Set<string>();
  /** Streaks that need a notification. */
  readonly failing = new Map<string, FailureStreak>();
  /** Endpoints of `notified` that have succeeded since. */
  readonly recovered = new Set<string>();

  constructor(threshold: number) {
    this.#threshold = threshold;
  }

  /** Counts an attempt; returns its streak when that has just reached the threshold. */
  attempted({ projectId, endpointId, errorClass, error, httpStatus, requestedAtMs }: AttemptRecord): FailureStreak | undefined {
    const known = this.#streaks.get(endpointId);
    if (errorClass === null) {
      if (known) this.#delete(endpointId);
      if (this.notified.size > 0 && this.notified.delete(endpointId)) this.recovered.add(endpointId);
      return undefined;
    }
    if (httpStatus === GONE) return undefined;
    const streak = known ?? { projectId, endpointId, failures: 0, sinceMs: requestedAtMs, error: '' };
    if (!known) this.#streaks.set(endpointId, streak);
    streak.failures++;
    streak.error = error ?? errorClass;
    if (streak.failures !== this.#threshold) return undefined;
    this.failing.set(endpointId, streak);
    return streak;
  }

  /** Marks an endpoint as failing when its circuit breaker opened; undefined when it already is. */
  tripped({ projectId, endpointId, failures, error }: Omit<FailureStreak, 'sinceMs'>): FailureStreak | undefined {
    const known = this.#streaks.get(endpointId);
    if (this.notified.has(endpointId) || (known && known.failures >= this.#threshold)) return undefined;
    const streak = { projectId, endpointId, failures: Math.max(failures, this.#threshold), sinceMs: known?.sinceMs ?? Date.now(), error };
    this.#streaks.set(endpointId, streak);
    this.failing.set(endpointId, streak);
    return streak;
  }

  /** False when the endpoint has succeeded since this streak began. */
  continues(streak: FailureStreak): boolean {
    return this.#streaks.get(streak.endpointId) === streak;
  }

  /** Removes endpoints that no longer exist. */
  keep(exists: (projectId: string, endpointId: string) => boolean): void {
    for (const { projectId, endpointId } of this.#streaks.values()) if (!exists(projectId, endpointId)) this.#delete(endpointId);
  }

  #delete(endpointId: string): void {
    this.#streaks.delete(endpointId);
    this.failing.delete(endpointId);
  }
}
