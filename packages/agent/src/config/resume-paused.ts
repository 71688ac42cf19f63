import type { Log } from '@gateway/core/logging';
import { resumeDeliveries } from '@gateway/store/deliveries';
import type { Database } from '@gateway/store/postgres';
import type { Endpoint, ConfigCache } from './config-cache.js';

/** Writes that this agent began while it thought that the endpoint was paused have ended by then. */
const SETTLE_MS = 3_000;

/**
 * An endpoint's deliveries are held by whoever thinks that it is paused. An agent that learns late of its activation may hold one more after the
 * control plane has released them: so each agent releases once more, after it has learnt of it.
 *
 * @returns what stops it
 */
export function resumePaused({ database, store, log }: { database: Database; store: ConfigCache; log: Log }): () => void {
  const timers = new Set<NodeJS.Timeout>();
  let paused = new Set<string>();

  const release = async (endpoints: readonly Endpoint[]) => {
    for (const { projectId, id } of endpoints) await resumeDeliveries(database.pool, { projectId, endpointId: id });
  };
  const look = () => {
    const activated: Endpoint[] = [];
    const stillPaused = new Set<string>();
    for (const project of store.projects.values()) {
      for (const endpoint of project.endpoints.values()) {
        if (endpoint.status === 'paused') stillPaused.add(endpoint.id);
        else if (endpoint.status === 'active' && paused.has(endpoint.id)) activated.push(endpoint);
      }
    }
    paused = stillPaused;
    if (activated.length === 0) return;
    const timer = setTimeout(() => {
      timers.delete(timer);
      release(activated).catch((error: unknown) => log.warn({ error }, 'Held deliveries of an activated endpoint could not be released.'));
    }, SETTLE_MS);
    timers.add(timer);
  };
  look();
  store.onChange(look);
  return () => {
    for (const timer of timers) clearTimeout(timer);
  };
}
