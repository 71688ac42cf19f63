import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { Sealer } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import { newId } from '@gateway/core/events';
import { updateEndpoint, type EndpointRow } from './endpoints.js';
import type { EndpointAuthentication, SecretRecord } from './snapshot.js';

/** Each live secret adds a signature to every request. */
const LIVE_SECRETS_MAX = 5;

/** A secret in the format of Standard Webhooks: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md */
export function generateSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/** Returns a new record with the secret encrypted, which does not expire. Stores nothing. */
export function sealSecret(secret: string, { seal }: Pick<Sealer, 'seal'>): SecretRecord {
  return { id: newId(), value: seal(secret), created_at: new Date().toISOString(), expires_at: null };
}

/** Returns the secrets that have not expired at `now`, in the order given. They stay encrypted. */
export function liveSecrets(secrets: readonly SecretRecord[], now = new Date()): SecretRecord[] {
  return secrets.filter(({ expires_at }) => expires_at === null || new Date(expires_at) > now);
}

/** Adds a secret in front; live ones expire after `overlapMs`, at most five are live. Lock: the endpoint's row, or concurrent rotations lose secrets. */
export function rotateSecret(
  knex: Knex,
  projectId: string,
  id: string,
  fresh: SecretRecord,
  overlapMs: number,
): Promise<EndpointRow | undefined> {
  return knex.transaction(async (trx) => {
    const where = { project_id: projectId, id };
    const query = trx('endpoints').where(where).whereNull('deleted_at').forUpdate();
    const locked = await query.first<Pick<EndpointRow, 'secrets'> | undefined>('secrets');
    if (!locked) return undefined;
    const end = new Date(Date.now() + overlapMs);
    const old = liveSecrets(locked.secrets).map((secret) =>
      secret.expires_at !== null && new Date(secret.expires_at) < end ? secret : { ...secret, expires_at: end.toISOString() },
    );
    const secrets = [fresh, ...liveSecrets(old)];
    if (secrets.length <= LIVE_SECRETS_MAX) return updateEndpoint(trx, projectId, id, { secrets });
    throw new GatewayError('conflict', {
      sentence: `the endpoint would have ${secrets.length} live secrets, more than ${LIVE_SECRETS_MAX}`,
      fix: 'wait until one has expired, or end them now with an overlap of 0 (`--overlap 0`, over the API `"expiration": 0`)',
    });
  });
}

/** Returns a copy with the header value, password or token replaced by what `change` returns for it. */
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
