import { explainKvError, GatewayError } from '@gateway/core/errors';
import { withTimeout } from '@gateway/core/process';
import type { Among } from '@gateway/store/config';
import { expediteDeliveries, type RetryTally } from '@gateway/store/deliveries';
import {
  breakerView,
  hastenProbe,
  readBreakers,
  readLoweredLimit,
  resetBreaker,
  type BreakerRecord,
  type BreakerView,
  type Kv,
} from '@gateway/store/kv';
import { type ProjectCall } from '../../api/vocabulary.js';

const READ_MS = 200;
const RESET_MS = 2_000;
const RETRY_AFTER_SECONDS = 5;

export interface Breakers {
  /** Null while KV is unavailable. */
  of(endpointId: string): BreakerView | null;
  /** Throws `kv_away` while KV is unavailable. */
  among(states: readonly BreakerView['state'][]): Among;
}

export async function readBreakersNow(kv: Kv, endpointIds: readonly string[]): Promise<Breakers> {
  let records: ReadonlyMap<string, BreakerRecord>;
  try {
    records = await withTimeout(readBreakers(kv, endpointIds), READ_MS);
  } catch (cause) {
    const outcome =
      'the list cannot be filtered by circuit breaker, because the states are unknown';
    return {
      of: () => null,
      among() {
        throw new GatewayError(
          'kv_away',
          { outcome, retryAfterSeconds: RETRY_AFTER_SECONDS },
          { cause },
        );
      },
    };
  }
  return {
    of: (endpointId) => breakerView(records.get(endpointId)),
    among(states) {
      const isWanted = states.includes('closed');
      // The endpoints to exclude if closed breakers are wanted, otherwise those to select.
      const ids = [...records].flatMap(([id, { state }]) =>
        state !== 'closed' && states.includes(state) !== isWanted ? [id] : [],
      );
      return isWanted ? { except: ids } : { only: ids };
    },
  };
}

/** Null at the setting, or while KV is unavailable. */
export function readConcurrencyNow(kv: Kv, endpointId: string): Promise<number | null> {
  return withTimeout(readLoweredLimit(kv, endpointId), READ_MS).catch(() => null);
}

export interface BehindBreaker {
  readonly endpoint_id: string;
  readonly endpoint_name: string | null;
  /** Due deliveries that wait for it. */
  readonly count: number;
  /** The earliest next request. */
  readonly until: Date | null;
}

/** Breakers that are not closed. None while KV is unavailable. */
export async function behindBreakersOf(
  { kv }: Pick<ProjectCall, 'kv'>,
  due: readonly Pick<RetryTally, 'endpointId' | 'endpointName' | 'count'>[],
): Promise<BehindBreaker[]> {
  const endpointIds = [...new Set(due.map(({ endpointId }) => endpointId))];
  const breakers = await readBreakersNow(kv, endpointIds);
  return endpointIds.flatMap((endpointId) => {
    const breaker = breakers.of(endpointId);
    if (!breaker || breaker.state === 'closed') return [];
    const tallies = due.filter((it) => it.endpointId === endpointId);
    return {
      endpoint_id: endpointId,
      endpoint_name: tallies[0]!.endpointName,
      count: tallies.reduce((sum, { count }) => sum + count, 0),
      until: breaker.until,
    };
  });
}

/**
 * Also sends the waiting deliveries. Throws `kv_away` if KV is unavailable; its host and the reason
 * are only logged.
 */
export async function closeBreaker({
  kv,
  config,
  log,
  planes,
  project,
  id,
}: ProjectCall): Promise<void> {
  try {
    await withTimeout(resetBreaker(kv, id), RESET_MS);
  } catch (cause) {
    log.warn(
      { endpoint_id: id, error: explainKvError(cause, config.kv) },
      'KV is unavailable: could not close a circuit breaker.',
    );
    throw new GatewayError(
      'kv_away',
      { outcome: 'the circuit breaker is unchanged', retryAfterSeconds: RETRY_AFTER_SECONDS },
      { cause },
    );
  }
  await expediteDeliveries(planes, { projectId: project.id, endpointId: id }, [
    'back_off',
    'breaker',
  ]);
}

/**
 * Lets the next due delivery of an endpoint probe its open circuit breaker. Returns the
 * milliseconds until a delivery may be due for that: 0 if the breaker is not open. While KV is
 * unavailable, each agent decides by its own counts.
 */
export async function probeNow(
  { kv, project }: Pick<ProjectCall, 'kv' | 'project'>,
  endpointId: string,
): Promise<number> {
  const endpoint = { projectId: project.id, endpointId };
  return withTimeout(hastenProbe(kv, endpoint), READ_MS).catch(() => 0);
}
