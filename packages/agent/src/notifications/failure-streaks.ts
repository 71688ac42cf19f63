import type { AttemptRecord } from '@gateway/store/deliveries';

/** Failed attempts of an endpoint in a row, as this agent has seen them. */
export interface Streak {
  readonly projectId: string;
  readonly endpointId: string;
  failures: number;
  readonly sinceMs: number;
  /** The sentence of the last one. */
  error: string;
}

/** 410: that endpoint is disabled, which is told in its own way. */
const GONE = 410;

/**
 * Counts the failed attempts in a row of each endpoint. In memory, for endpoints that are failing alone: an attempt that succeeds costs two look-ups in maps
 * that are mostly empty.
 */
export class Streaks {
  readonly #threshold: number;
  readonly #streaks = new Map<string, Streak>();
  /** Endpoints that somebody has told of, this agent or another. */
  readonly told = new Set<string>();
  /** Those that have become failing and are to be told of. */
  readonly failing = new Map<string, Streak>();
  /** Those of `told` that have answered well since. */
  readonly recovered = new Set<string>();

  constructor(threshold: number) {
    this.#threshold = threshold;
  }

  /** Counts an attempt; returns the streak that has just become one to tell of. */
  attempted({ projectId, endpointId, errorClass, error, httpStatus, requestedAtMs }: AttemptRecord): Streak | undefined {
    const streak = this.#streaks.get(endpointId);
    if (errorClass === null) {
      if (streak) {
        this.#streaks.delete(endpointId);
        this.failing.delete(endpointId);
      }
      if (this.told.size > 0 && this.told.delete(endpointId)) this.recovered.add(endpointId);
      return undefined;
    }
    if (httpStatus === GONE) return undefined;
    const sentence = error ?? errorClass;
    if (!streak) this.#streaks.set(endpointId, { projectId, endpointId, failures: 1, sinceMs: requestedAtMs, error: sentence });
    else {
      streak.failures++;
      streak.error = sentence;
    }
    const grown = streak ?? this.#streaks.get(endpointId)!;
    if (grown.failures !== this.#threshold) return undefined;
    this.failing.set(endpointId, grown);
    return grown;
  }

  /** Makes an endpoint failing whose circuit breaker has opened; undefined when that is known, or told already. */
  tripped({ projectId, endpointId, failures, error }: Omit<Streak, 'sinceMs'>): Streak | undefined {
    const streak = this.#streaks.get(endpointId);
    if (this.told.has(endpointId) || (streak && streak.failures >= this.#threshold)) return undefined;
    const grown = { projectId, endpointId, failures: Math.max(failures, this.#threshold), sinceMs: streak?.sinceMs ?? Date.now(), error };
    this.#streaks.set(endpointId, grown);
    this.failing.set(endpointId, grown);
    return grown;
  }

  /** False when the endpoint has answered well since this streak began. */
  goesOn(streak: Streak): boolean {
    return this.#streaks.get(streak.endpointId) === streak;
  }

  /** Forgets endpoints that are no more. */
  keep(exists: (projectId: string, endpointId: string) => boolean): void {
    for (const { projectId, endpointId } of this.#streaks.values()) {
      if (exists(projectId, endpointId)) continue;
      this.#streaks.delete(endpointId);
      this.failing.delete(endpointId);
    }
  }
}
