import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { Sealer } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import { newId } from '@gateway/core/events';
import { changeSecrets, type EndpointRow } from './endpoints.js';
import type { EndpointAuthentication, SecretRecord } from './snapshot.js';

/** Each live secret adds a signature to every request. */
const LIVE_SECRETS_MAX = 5;

/** A secret in the format of Standard Webhooks: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md */
export function generateSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/** The stored form of a secret. */
export function sealSecret(secret: string, { seal }: Pick<Sealer, 'seal'>): SecretRecord {
  return { id: newId(), value: seal(secret), created_at: new Date().toISOString(), expires_at: null };
}

/** The secrets that have not expired. */
export function liveSecrets(secrets: readonly SecretRecord[], now = new Date()): SecretRecord[] {
  return secrets.filter(({ expires_at }) => expires_at === null || new Date(expires_at) > now);
}

/** Adds a secret in front; the live ones expire after `overlapMs`. Undefined when there is no such endpoint. Throws `conflict` when too many are live. */
export function rotateSecret(
  knex: Knex,
  { projectId, id }: { projectId: string; id: string },
  fresh: SecretRecord,
  overlapMs: number,
): Promise<EndpointRow | undefined> {
  return changeSecrets(knex, projectId, id, (secrets) => {
    const next = rotated(secrets, fresh, overlapMs);
    if (next.length <= LIVE_SECRETS_MAX) return next;
    throw new GatewayError('conflict', {
      sentence: `the endpoint would have ${next.length} live secrets, more than ${LIVE_SECRETS_MAX}`,
      fix: 'wait until one has expired, or end them now with an overlap of 0 (`--overlap 0`, over the API `"expiration": 0`)',
    });
  });
}

function rotated(secrets: readonly SecretRecord[], fresh: SecretRecord, overlapMs: number): SecretRecord[] {
  const end = new Date(Date.now() + overlapMs);
  const old = liveSecrets(secrets).map((secret) =>
    secret.expires_at !== null && new Date(secret.expires_at) < end ? secret : { ...secret, expires_at: end.toISOString() },
  );
  return [fresh, ...liveSecrets(old)];
}

/** The authentication with its secret value changed. */
export function withSecret(authentication: EndpointAuthentication, change: (secret: string) => string): EndpointAuthentication {
  switch (authentication.type) {
    case 'api_key':
      return { type: 'api_key', api_key: { ...authentication.api_key, header_value: change(authentication.api_key.header_value) } };
    case 'basic':
      return { type: 'basic', basic: { ...authentication.basic, password: change(authentication.basic.password) } };
    case 'bearer':
      return { type: 'bearer', bearer: { token: change(authentication.bearer.token) } };
  }
}

/** The endpoint of an id in any project that is not deleted. One index probe per project. No lock. */
export async function findEndpointAnywhere(
  pool: Pool,
  id: string,
): Promise<{ projectId: string; id: string; secrets: readonly SecretRecord[] } | undefined> {
  const { rows } = await pool.query<{ project_id: string; secrets: SecretRecord[] }>({
    name: 'find-endpoint-anywhere',
    text: `select project_id, secrets from endpoints
           where project_id = any (array(select id from projects where deleted_at is null)) and id = $1 and deleted_at is null`,
    values: [id],
  });
  const [row] = rows;
  return row && { projectId: row.project_id, id, secrets: row.secrets };
}
