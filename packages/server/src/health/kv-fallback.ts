import { kvReason } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import type { Kv } from '@gateway/store/kv';
import { withTimeout } from '@gateway/core/process';

/** A request does not wait longer for KV. */
const ANSWER_MS = 200;
/** KV that has failed is not asked again for so long, or each request would wait for it. */
const REST_MS = 2_000;

/** KV for what is only faster, or shared, with it: no request fails or waits for long because it is away. */
export interface PatientKv {
  /** Undefined when KV is away. */
  ask<T>(question: (kv: Kv) => Promise<T>): Promise<{ readonly answer: T } | undefined>;
}

/**
 * Says once when KV goes away and when it is back.
 *
 * @param place what the reason names
 * @param meanwhile what the process does without KV, for the log
 */
export function patientKv(
  kv: Kv,
  { place, log, meanwhile }: { place: { host: string; port: number }; log: Log; meanwhile: string },
): PatientKv {
  let restUntilMs = 0;
  let isAway = false;
  return {
    async ask(question) {
      if (performance.now() < restUntilMs) return undefined;
      try {
        const answer = await withTimeout(question(kv), ANSWER_MS);
        if (isAway) log.info({}, 'KV is back.');
        isAway = false;
        return { answer };
      } catch (error) {
        restUntilMs = performance.now() + REST_MS;
        if (!isAway) log.warn({ reason: kvReason(error, place) }, `KV is away: ${meanwhile}.`);
        isAway = true;
        return undefined;
      }
    },
  };
}
