import { isSealed, type Open } from '@gateway/core/crypto';
import type { Project } from '@gateway/ingest/routing/project';
import type { AgentContext } from './agent-context.js';

interface WrongKeyOptions extends Pick<AgentContext, 'configCache' | 'health' | 'log'> {
  readonly open: Open;
  /** Returns the held deliveries to Postgres. Nothing is sent once it is called. */
  readonly stop: () => Promise<void>;
}

const WRONG_KEY =
  'The encryption key of this agent opens no secret of the database, which was probably replaced or restored while the agent ran. It has stopped and given back its deliveries. ' +
  'Set encryption_key / GATEWAY_ENCRYPTION_KEY to the key of the database, and restart the agent.';

/** Stops the agent when its key no longer opens any secret: each attempt would use up a retry. */
export function stopAtWrongKey({ configCache, health, log, open, stop }: WrongKeyOptions): void {
  let isStopped = false;
  configCache.onChange(() => {
    if (isStopped) return;
    try {
      requireKey(configCache.projects.values(), open);
    } catch {
      isStopped = true;
      health.report('encryption key', 'down', WRONG_KEY);
      log.error({ dependency: 'encryption key' }, WRONG_KEY);
      stop().catch((error: unknown) =>
        log.error(
          { error },
          'The agent could not give back everything; other agents take it over.',
        ),
      );
    }
  });
}

/** Secrets tried: a single one that cannot be opened must not stop the agent. */
const TRIED_MAX = 20;

/** Throws the error of `open` when the key opens no stored secret. */
export function requireKey(projects: Iterable<Project>, open: Open): void {
  let tried = 0;
  let failure: unknown;
  for (const { endpoints } of projects) {
    for (const { id, secrets } of endpoints.values()) {
      const [first] = secrets;
      // A newer version wrote this format, which says nothing about the key.
      if (!first || !isSealed(first.value)) continue;
      try {
        open(first.value, ['endpoints', id, 'secrets']);
        return;
      } catch (error) {
        failure = error;
      }
      if (++tried === TRIED_MAX) throw failure as Error;
    }
  }
  if (failure) throw failure as Error;
}
