import type { Project } from './config-cache.js';

/** Endpoints that are tried: one whose secret nobody can open must not hold up all others. */
const TRIED_MAX = 20;

/**
 * Refuses an encryption key that opens no stored secret, as one does after `gateway utils secrets rotate`: every delivery would fail.
 *
 * @param open throws GatewayError `not_unsealable`, which comes through
 */
export function requireKey(projects: Iterable<Project>, open: (sealed: string) => string): void {
  const secrets = [...projects].flatMap(({ endpoints }) =>
    [...endpoints.values()].flatMap(({ sealedSecrets }) => sealedSecrets.slice(0, 1)),
  );
  let refusal: unknown;
  for (const { value } of secrets.slice(0, TRIED_MAX)) {
    try {
      open(value);
      return;
    } catch (error) {
      refusal = error;
    }
  }
  if (refusal) throw refusal as Error;
}
