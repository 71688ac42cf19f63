import { requireKey } from '../config/config-cache.js';
import type { AgentContext } from '../config/agent-context.js';

interface Options extends Pick<AgentContext, 'configCache' | 'health' | 'log'> {
  readonly open: (sealed: string) => string;
  /** Gives back what the agent holds; nothing is sent from the moment it is called. */
  readonly stop: () => Promise<void>;
}

const REASON =
  'The encryption key of this agent opens no secret of the database, which was probably replaced or restored while the agent ran. It has stopped and given back its deliveries. ' +
  'Set encryption_key / GATEWAY_ENCRYPTION_KEY to the key of the database, and restart the agent.';

/** Stops the agent, and says why, when a change of the configuration leaves no secret that its key opens: each attempt would use up a retry. */
export function stopAtWrongKey({ configCache, health, log, open, stop }: Options): void {
  let isStopped = false;
  configCache.onChange(() => {
    if (isStopped) return;
    try {
      requireKey(configCache.projects.values(), open);
    } catch {
      isStopped = true;
      health.report('encryption key', 'down', REASON);
      log.error({ dependency: 'encryption key' }, REASON);
      stop().catch((error: unknown) => log.error({ error }, 'The agent could not give back everything; other agents take it over.'));
    }
  });
}
