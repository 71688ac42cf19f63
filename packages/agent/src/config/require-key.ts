import { isSealed, type Open } from '@gateway/core/crypto';
import type { Project } from '@gateway/ingest/routing/project';
import type { Health } from '@gateway/core/process';
import type { ProcessContext } from './agent-context.js';

interface WrongKeyOptions extends Pick<ProcessContext, 'configCache' | 'log' | 'open'> {
  readonly health: Pick<Health, 'report'>;
  /** Stops sending and returns this agent's deliveries to Postgres. */
  readonly stop: () => Promise<void>;
}

const WRONG_KEY =
  'The encryption key of this agent opens no secret of the database, which was probably replaced or restored while the agent ran. It has stopped and given back its deliveries. ' +
  'Set encryption_key / GATEWAY_ENCRYPTION_KEY to the key of the database, and restart the agent.';

/**
 * Stops the agent when its key no longer decrypts any stored secret: it could not sign requests, so
 * it returns its deliveries to Postgres.
 */
export function stopAtWrongKey({ configCache, health, log, open, stop }: WrongKeyOptions): void {
  const unfollow = configCache.onChange(() => {
    try {
      requireKey(configCache.projects.values(), open);
    } catch {
      unfollow();
      health.report('encryption key', 'down', WRONG_KEY);
      log.error({ dependency: 'encryption key' }, WRONG_KEY);
      stop().catch((error: unknown) =>
        log.error({ error }, 'Could not release all work; other agents take over.'),
      );
    }
  });
}

/** The maximum number of secrets to try. A single unreadable secret must not stop the agent. */
const TRIED_MAX = 20;

/**
 * Throws the error from `open` if the key decrypts none of the first `TRIED_MAX` stored secrets.
 */
export function requireKey(projects: Iterable<Project>, open: Open): void {
  let tried = 0;
  let failure: unknown;
  for (const { endpoints } of projects) {
    for (const { id, secrets } of endpoints.values()) {
      const [first] = secrets;
      // A secret in an unknown format was written by a newer version and reveals nothing about the
      // key.
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
