import { explainKvError, GatewayError } from '@gateway/core/errors';
import { withTimeout } from '@gateway/core/process';
import type { Among } from '@gateway/store/config';
import { expediteDeliveries } from '@gateway/store/deliveries';
import {
  breakerView,
  readBreakers,
  resetBreaker,
  type BreakerRecord,
  type BreakerView,
  type Kv,
} from '@gateway/store/kv';
import type { ProjectCall } from '../../api/route.js';

const READ_MS = 200;
const RESET_MS = 2_000;
const RETRY_AFTER_SECONDS = 5;

export interface Breakers {
  /** Returns null while KV is away. */
  of(endpointId: string): BreakerView | null;
  /** Selects endpoints by the states of their breakers. Throws `kv_away`. */
  among(projectId: string, states: readonly BreakerView['state'][]): Among;
}

/**
 * Reads the breakers. KV holds only those of recently failed endpoints, so the cost is independent
 * of the number of endpoints.
 */
export async function readBreakersNow(kv: Kv): Promise<Breakers> {
  let records: ReadonlyMap<string, BreakerRecord>;
  try {
    records = await withTimeout(readBreakers(kv), READ_MS);
  } catch (cause) {
    const outcome = 'the states of circuit breakers, which the list is filtered by, are not known';
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
    among(projectId, states) {
      const isWanted = states.includes('closed');
      // Ids that are not closed: the wanted, or, if closed is wanted, all but the wanted.
      const ids = [...records].flatMap(([id, { project_id, state }]) =>
        project_id === projectId && state !== 'closed' && states.includes(state) !== isWanted
          ? [id]
          : [],
      );
      return isWanted ? { except: ids } : { only: ids };
    },
  };
}

/**
 * Closes the breaker and sends waiting deliveries. Throws `kv_away`; host and reason are only
 * logged.
 */
export async function closeBreaker({
  kv,
  config,
  log,
  database,
  project,
  id,
}: ProjectCall): Promise<void> {
  try {
    await withTimeout(resetBreaker(kv, id), RESET_MS);
  } catch (cause) {
    log.warn(
      { endpoint_id: id, error: explainKvError(cause, config.kv) },
      'KV is away: a circuit breaker could not be closed.',
    );
    throw new GatewayError(
      'kv_away',
      { outcome: 'the circuit breaker is as it was', retryAfterSeconds: RETRY_AFTER_SECONDS },
      { cause },
    );
  }
  await expediteDeliveries(database.pool, { projectId: project.id, endpointId: id }, ['breaker']);
}
