import { GatewayError } from '@gateway/core/errors';
import { explainKvError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import type { Config } from '@gateway/core/config';
import { expediteDeliveries } from '@gateway/store/deliveries';
import { readBreakerEndpoints, type BreakerEndpoint } from '@gateway/store/config';
import { breakerView, openKv, readBreakers, resetBreaker, type Kv } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';
import { retryUntil } from '../app/kv.js';

/** How long KV is waited for. */
const PATIENCE_MS = 2_000;

/**
 * The breakers that are not closed, or that of one endpoint.
 *
 * @throws GatewayError `not_found` when there is no such endpoint, `kv_unreachable` and its like
 */
export async function breakersOf(pool: Database['pool'], config: Config, endpointId: string | undefined) {
  const records = await withKv(config, readBreakers);
  const wanted = endpointId === undefined ? [...records].flatMap(([id, { state }]) => (state === 'closed' ? [] : id)) : [endpointId];
  const endpoints = endpointId === undefined ? await readBreakerEndpoints(pool, wanted) : [await endpointOf(pool, endpointId)];
  return endpoints.map(({ id, name, project_id, project_name }) => ({
    ...{ endpoint_id: id, endpoint_name: name, project_id, project_name },
    ...breakerView(records.get(id)),
  }));
}

/** Closes the breaker of an endpoint and makes due what waits for it. Throws as `breakersOf` does. */
export async function resetBreakerOf(pool: Database['pool'], config: Config, endpointId: string): Promise<void> {
  const { project_id: projectId } = await endpointOf(pool, endpointId);
  await withKv(config, (kv) => resetBreaker(kv, endpointId));
  await expediteDeliveries(pool, { projectId, endpointId }, ['breaker']);
}

async function endpointOf(pool: Database['pool'], id: string): Promise<BreakerEndpoint> {
  const [endpoint] = isId(id) ? await readBreakerEndpoints(pool, [id]) : [];
  if (!endpoint) throw new GatewayError('not_found', { thing: 'endpoint', id });
  return endpoint;
}

async function withKv<T>(config: Config, work: (kv: Kv) => Promise<T>): Promise<T> {
  let last: unknown;
  const kv = openKv(config.kv, (error) => (last = error));
  try {
    return await retryUntil(
      () => work(kv),
      (waitedMs) => waitedMs < PATIENCE_MS,
    );
  } catch (error) {
    throw explainKvError(last ?? error, config.kv);
  } finally {
    await kv.close();
  }
}
