import { explainKvError, type Config } from '@gateway/core';
import { breakerView, readBreakers, resetBreaker, type BreakerView, type Kv } from '@gateway/store';
import { within } from './within.js';

/** No answer waits longer for KV. */
const ANSWER_MS = 200;
const RESET_MS = 2_000;

/** Tells the breaker of any endpoint, of one reading; null for all while KV is away. */
export async function breakersNow(kv: Kv): Promise<(endpointId: string) => BreakerView | null> {
  try {
    const records = await within(ANSWER_MS, readBreakers(kv));
    return (endpointId) => breakerView(records.get(endpointId));
  } catch {
    return () => null;
  }
}

/** Closes the breaker of an endpoint. Throws GatewayError `kv_unreachable` and its like when KV is away. */
export async function closeBreaker(kv: Kv, endpointId: string, config: Config): Promise<void> {
  try {
    await within(RESET_MS, resetBreaker(kv, endpointId));
  } catch (error) {
    throw explainKvError(error, config.kv);
  }
}
