// How many requests an endpoint gets at once follows from its answers, as a TCP sender's window does
// (additive increase, multiplicative decrease), in rounds of about one response time:
// https://vector.dev/docs/about/under-the-hood/networking/arc/

import type { LoweredLimit } from '@gateway/store/kv';

/** A round covers many answers of a fast endpoint, so that one late answer does not decide. */
const ROUND_MIN_MS = 100;
/** Smaller changes of the response time are noise of this process. */
const NOISE_MS = 50;
/** Deviations from the average response time that count as slower. */
const DEVIATIONS = 2.5;
/** The weight of the latest round in averages. */
const WEIGHT = 0.4;
const SLOWER = 0.9;
const OVERLOADED = 0.5;
/** An idle endpoint's state is then dropped. */
const FORGET_MS = 600_000;

interface Adapted {
  limit: number;
  most: number;
  averageMs: number;
  deviationMs: number;
  roundEndsMs: number;
  answers: number;
  sumMs: number;
  isReached: boolean;
  isOverloaded: boolean;
}

export interface Answered {
  readonly durationMs: number;
  /** The endpoint asked for fewer requests, or did not answer in time. */
  readonly isOverloaded: boolean;
  /** Requests under way, including this one. */
  readonly sending: number;
}

export class AdaptiveConcurrency {
  readonly #endpoints = new Map<string, Adapted>();

  /** @param most the setting: the limit until answers lower it */
  limitOf(endpointId: string, most: number, nowMs: number): number {
    const adapted = this.#endpoints.get(endpointId);
    // After a back-off, the next requests must not wait for an answer to be fewer.
    if (adapted?.isOverloaded && nowMs >= adapted.roundEndsMs) endRound(adapted, nowMs);
    return adapted ? Math.max(1, Math.min(most, Math.floor(adapted.limit))) : most;
  }

  answered(endpointId: string, most: number, answer: Answered, nowMs: number): void {
    let it = this.#endpoints.get(endpointId);
    if (!it) this.#endpoints.set(endpointId, (it = newcomer(most, nowMs)));
    it.most = most;
    it.limit = Math.min(it.limit, most);
    it.isReached ||= answer.sending >= Math.floor(it.limit);
    if (answer.isOverloaded) it.isOverloaded = true;
    else {
      it.answers++;
      it.sumMs += answer.durationMs;
    }
    if (nowMs >= it.roundEndsMs) endRound(it, nowMs);
  }

  /** Lowest first. */
  lowered(): LoweredLimit[] {
    return [...this.#endpoints]
      .flatMap(([endpointId, { limit, most }]) =>
        limit < most ? [{ endpointId, limit: Math.floor(limit) }] : [],
      )
      .sort((one, other) => one.limit - other.limit);
  }

  forget(nowMs: number): void {
    for (const [id, { roundEndsMs }] of this.#endpoints)
      if (nowMs - roundEndsMs > FORGET_MS) this.#endpoints.delete(id);
  }
}

function newcomer(most: number, nowMs: number): Adapted {
  const round = { answers: 0, sumMs: 0, isReached: false, isOverloaded: false };
  return {
    limit: most,
    most,
    averageMs: 0,
    deviationMs: 0,
    roundEndsMs: nowMs + ROUND_MIN_MS,
    ...round,
  };
}

function endRound(it: Adapted, nowMs: number): void {
  const { answers, averageMs, deviationMs, most } = it;
  const meanMs = answers > 0 ? it.sumMs / answers : averageMs;
  const isKnown = averageMs > 0;
  const isSlower = isKnown && meanMs > averageMs + Math.max(NOISE_MS, DEVIATIONS * deviationMs);
  // If the limit was reached, the endpoint has shown how many it answers at once.
  const shown = it.isReached ? answers : it.limit;
  if (it.isOverloaded) it.limit = Math.max(1, Math.min(it.limit * OVERLOADED, shown));
  else if (isSlower) it.limit = Math.max(1, it.limit * SLOWER);
  else if (it.isReached) it.limit = Math.min(most, Math.floor(it.limit) + 1);
  it.averageMs = isKnown ? averageMs + WEIGHT * (meanMs - averageMs) : meanMs;
  it.deviationMs += WEIGHT * (Math.abs(meanMs - averageMs) * Number(isKnown) - deviationMs);
  it.roundEndsMs = nowMs + Math.max(ROUND_MIN_MS, it.averageMs);
  [it.answers, it.sumMs, it.isReached, it.isOverloaded] = [0, 0, false, false];
}
