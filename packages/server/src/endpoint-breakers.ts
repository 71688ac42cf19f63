import { explainKvError, type Config } from '@gateway/core';
import { readBreakers, resetBreaker, type BreakerRecord, type Kv } from '@gateway/store';
import { within } from './within.js';

/** The circuit breaker of an endpoint, as the management API shows it. */
export interface BreakerView {
  readonly state: BreakerRecord['state'];
  /** Since when it is not closed. */
  readonly since: Date | null;
  /** Open: when the endpoint is tried again. Half-open: until when an answer is waited for. */
  readonly until: Date | null;
  /** Requests, and failures among them: those that opened it, or that are counted now. */
  readonly requests: number;
  readonly failures: number;
}

/** No answer waits longer for KV. */
const ANSWER_MS = 200;
const RESET_MS = 2_000;
const CLOSED: BreakerView = { state: 'closed', since: null, until: null, requests: 0, failures: 0 };

/** Tells the breaker of any endpoint, of one reading; null for all while KV is away. */
export async function breakersNow(kv: Kv): Promise<(endpointId: string) => BreakerView | null> {
  try {
    const records = await within(ANSWER_MS, readBreakers(kv));
    return (endpointId) => viewOf(records.get(endpointId));
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

function viewOf(record: BreakerRecord | undefined): BreakerView {
  if (!record) return CLOSED;
  const { state, requests, failures } = record;
  if (state === 'closed') return { ...CLOSED, requests, failures };
  return { state, since: new Date(record.since_ms), until: new Date(record.until_ms), requests, failures };
}
