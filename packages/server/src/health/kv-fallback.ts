import { kvReason } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import { withTimeout } from '@gateway/core/process';
import type { Kv } from '@gateway/store/kv';

const TIMEOUT_MS = 200;
/** The time for which KV is skipped after a failure, so that not every request waits for it. */
const RETRY_AFTER_MS = 2_000;

/**
 * Access to KV for features that work without it. A KV outage fails no request and delays none for
 * long.
 */
export interface KvFallback {
  ask<T>(question: (kv: Kv) => Promise<T>): Promise<{ readonly answer: T } | undefined>;
}

/**
 * Returns access to KV that logs when an outage begins and ends. The first message includes what
 * the process does `meanwhile`.
 */
export function kvFallback(
  kv: Kv,
  { place, log, meanwhile }: { place: { host: string; port: number }; log: Log; meanwhile: string },
): KvFallback {
  let skipUntilMs = 0;
  let isAway = false;
  return {
    async ask(question) {
      if (performance.now() < skipUntilMs) return undefined;
      try {
        const answer = await withTimeout(question(kv), TIMEOUT_MS);
        if (isAway) log.info({}, 'KV is back.');
        isAway = false;
        return { answer };
      } catch (error) {
        skipUntilMs = performance.now() + RETRY_AFTER_MS;
        if (!isAway) log.warn({ reason: kvReason(error, place) }, `KV is away: ${meanwhile}.`);
        isAway = true;
        return undefined;
      }
    },
  };
}
