import { resumeDeliveries } from '@gateway/store/deliveries';
import type { AgentContext } from './agent-context.js';
import type { Endpoint } from './project.js';

/** Writes of this agent that saw the endpoint as paused have ended after this. */
const SETTLE_MS = 3_000;

/** Resumes the deliveries of activated endpoints once more, since another agent may have paused some before it learned of the activation. Returns what stops it. */
export function resumePaused({ database, configCache, log }: Pick<AgentContext, 'database' | 'configCache' | 'log'>): () => void {
  const timers = new Set<NodeJS.Timeout>();
  let paused = new Set<string>();

  const resume = async (endpoints: readonly Endpoint[]) => {
    for (const { projectId, id } of endpoints) await resumeDeliveries(database.pool, { projectId, endpointId: id });
  };
  const check = () => {
    const endpoints = [...configCache.projects.values()].flatMap((project) => [...project.endpoints.values()]);
    const activated = paused.size === 0 ? [] : endpoints.filter(({ id, status }) => status === 'active' && paused.has(id));
    paused = new Set(endpoints.filter(({ status }) => status === 'paused').map(({ id }) => id));
    if (activated.length === 0) return;
    const timer = setTimeout(() => {
      timers.delete(timer);
      resume(activated).catch((error: unknown) => log.warn({ error }, 'Held deliveries of an activated endpoint could not be released.'));
    }, SETTLE_MS);
    timers.add(timer);
  };
  check();
  configCache.onChange(check);
  return () => {
    for (const timer of timers) clearTimeout(timer);
  };
}
