import { explainKvError, GatewayError } from '@gateway/core/errors';
import { breakerView, readBreakers, resetBreaker, type BreakerView, type Kv } from '@gateway/store/kv';
import type { Parts } from '../http/server-context.js';
import { withTimeout } from '@gateway/core/process';

/** No answer waits longer for KV. */
const ANSWER_MS = 200;
const RESET_MS = 2_000;
const RETRY_AFTER_SECONDS = 5;

/** Tells the breaker of any endpoint, of one reading; null for all while KV is away. */
export async function breakersNow(kv: Kv): Promise<(endpointId: string) => BreakerView | null> {
  try {
    const records = await withTimeout(readBreakers(kv), ANSWER_MS);
    return (endpointId) => breakerView(records.get(endpointId));
  } catch {
    return () => null;
  }
}

/**
 * Closes the breaker of an endpoint.
 *
 * @throws GatewayError `kv_away`, which names no place: that and the reason are for the log
 */
export async function closeBreaker({ kv, config, log }: Pick<Parts, 'kv' | 'config' | 'log'>, endpointId: string): Promise<void> {
  try {
    await withTimeout(resetBreaker(kv, endpointId), RESET_MS);
  } catch (error) {
    log.warn({ endpoint_id: endpointId, error: explainKvError(error, config.kv) }, 'KV is away: a circuit breaker could not be closed.');
    throw new GatewayError(
      'kv_away',
      { outcome: 'the circuit breaker is as it was', retryAfterSeconds: RETRY_AFTER_SECONDS },
      { cause: error },
    );
  }
}
