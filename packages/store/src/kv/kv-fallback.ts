import { kvReason } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import { withTimeout } from '@gateway/core/process';
import type { Kv } from './kv.js';

/** A request of a client waits for the answer. */
const TIMEOUT_MS = 200;
/** KV is skipped for this long after a failure, so that not every request waits for it. */
const RETRY_AFTER_MS = 2_000;

/** For features that work without KV. An outage fails no request and delays none for long. */
export interface KvFallback {
  ask<T>(question: (kv: Kv) => Promise<T>): Promise<{ readonly answer: T } | undefined>;
}

/**
 * Logs when an outage begins and ends. The first message says what the process does `meanwhile`.
 */
export function kvFallback(
  kv: Kv,
  {
    place,
    log,
    meanwhile,
    timeoutMs = TIMEOUT_MS,
  }: {
    place: { host: string; port: number };
    log: Log;
    meanwhile: string;
    timeoutMs?: number;
  },
): KvFallback {
  let skipUntilMs = 0;
  let isAway = false;
  return {
    async ask(question) {
      if (performance.now() < skipUntilMs) return undefined;
      try {
        const answer = await withTimeout(question(kv), timeoutMs);
        if (isAway) log.info({}, 'KV is available again.');
        isAway = false;
        return { answer };
      } catch (error) {
        skipUntilMs = performance.now() + RETRY_AFTER_MS;
        if (!isAway)
          log.warn({ reason: kvReason(error, place) }, `KV is unavailable: ${meanwhile}.`);
        isAway = true;
        return undefined;
      }
    },
  };
}
