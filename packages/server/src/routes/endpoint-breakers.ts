import { explainKvError, GatewayError } from '@gateway/core/errors';
import { withTimeout } from '@gateway/core/process';
import { breakerView, readBreakers, resetBreaker, type BreakerView, type Kv } from '@gateway/store/kv';
import type { ServerContext } from '../api/route.js';

const READ_MS = 200;
const RESET_MS = 2_000;
const RETRY_AFTER_SECONDS = 5;

/** Reads the breakers of all endpoints at once; null for each while KV is away. */
export async function readBreakersNow(kv: Kv): Promise<(endpointId: string) => BreakerView | null> {
  try {
    const records = await withTimeout(readBreakers(kv), READ_MS);
    return (endpointId) => breakerView(records.get(endpointId));
  } catch {
    return () => null;
  }
}

/**
 * Closes the breaker of an endpoint.
 *
 * @throws GatewayError `kv_away`; the place and the reason go to the log only
 */
export async function closeBreaker({ kv, config, log }: ServerContext, endpointId: string): Promise<void> {
  try {
    await withTimeout(resetBreaker(kv, endpointId), RESET_MS);
  } catch (cause) {
    log.warn({ endpoint_id: endpointId, error: explainKvError(cause, config.kv) }, 'KV is away: a circuit breaker could not be closed.');
    throw new GatewayError('kv_away', { outcome: 'the circuit breaker is as it was', retryAfterSeconds: RETRY_AFTER_SECONDS }, { cause });
  }
}
