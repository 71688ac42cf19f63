import type { Project } from './config-cache.js';

/** Secrets that are tried: a single one that cannot be opened must not stop the agent. */
const TRIED_MAX = 20;

/**
 * Checks that the encryption key opens a stored secret. After `gateway utils secrets rotate` the old key opens none, and every delivery would fail.
 *
 * @throws the error of `open` when it opens none
 */
export function requireKey(projects: Iterable<Project>, open: (sealed: string) => string): void {
  const secrets = [...projects].flatMap(({ endpoints }) => [...endpoints.values()].flatMap((it) => it.sealedSecrets.slice(0, 1)));
  let failure: unknown;
  for (const { value } of secrets.slice(0, TRIED_MAX)) {
    try {
      open(value);
      return;
    } catch (error) {
      failure = error;
    }
  }
  if (failure) throw failure as Error;
}
