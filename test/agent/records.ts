import { createCipheriv, randomBytes } from 'node:crypto';
import type { Endpoint } from '#ingest/routing/project';
import { sealer, type SecretPlace } from '#core/crypto/sealing';
import { newId } from '#core/events/ids';
import {
  insertEndpoint,
  type EndpointFields,
  type EndpointRow,
  type SecretRecord,
} from '#store/config/endpoints';
import {
  insertProject,
  DEFAULT_SIGNATURE,
  DEFAULT_STRATEGY,
  type ProjectConfig,
} from '#store/config/projects';
import { insertSource, type SourceRow } from '#store/config/sources';
import { type SubscriptionFilter, insertSubscription } from '#store/config/subscriptions';
import { insertOrganisation } from '#store/people/organisations';
import type { Database } from '#store/postgres/database';

/** The encryption key of all test secrets. */
export const ENCRYPTION_KEY = randomBytes(32).toString('base64');
const { seal } = sealer(ENCRYPTION_KEY);

const CACHED_ID = '0190c0de-0000-7000-8000-000000000002';

/** Seals a text for its place, by default the authentication of `cachedEndpoint`. */
export const sealed = (
  text: string,
  place: SecretPlace = ['endpoints', CACHED_ID, 'authentication'],
): string => seal(text, place);

/** Seals a text in the old format, which is not bound to a place. */
export function sealedFirst(text: string, encryptionKey = ENCRYPTION_KEY): string {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', Buffer.from(encryptionKey, 'base64'), iv);
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return `sealed:v1:${Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url')}`;
}

/** Creates a project in a new organisation. Returns its id. */
export async function makeProject(
  db: Database,
  {
    type = 'outgoing',
    config = {},
  }: { type?: 'outgoing' | 'incoming'; config?: ProjectConfig } = {},
): Promise<string> {
  const userId = newId();
  // No password: hashing takes most of a second.
  await db.knex('users').insert({
    id: userId,
    email: `${userId}@example.com`,
    first_name: 'a',
    last_name: 'b',
    password_hash: '',
  });
  const organisation = await insertOrganisation(db.knex, { name: 'Acme', userId });
  return (await insertProject(db.knex, organisation.id, { name: 'shop', type, config })).id;
}

export function makeSecret(): string {
  return `whsec_${randomBytes(24).toString('base64')}`;
}

/** A stored secret of an endpoint, by default of `cachedEndpoint`. */
export function secretRecord(
  secret: string,
  expiresAt: Date | null = null,
  endpointId = CACHED_ID,
): SecretRecord {
  const value = seal(secret, ['endpoints', endpointId, 'secrets']);
  return {
    id: newId(),
    value,
    created_at: new Date().toISOString(),
    expires_at: expiresAt?.toISOString() ?? null,
  };
}

/** An endpoint as held by the config cache. */
export function cachedEndpoint(fields: Partial<Endpoint> = {}): Endpoint {
  return {
    projectId: '0190c0de-0000-7000-8000-000000000001',
    id: CACHED_ID,
    url: 'https://example.com/hooks?a=1',
    ownerId: null,
    status: 'active',
    statusReason: null,
    secrets: [],
    authentication: null,
    mtlsClientCert: null,
    format: null,
    signatures: null,
    signaturePrefix: null,
    headers: null,
    unreadable: null,
    timeoutMs: 7_000,
    concurrency: null,
    strategy: DEFAULT_STRATEGY,
    signature: DEFAULT_SIGNATURE,
    limit: null,
    circuitBreaker: undefined,
    ordering: null,
    orderingFailure: null,
    orderingParkAfterSeconds: null,
    batch: null,
    ...fields,
  };
}

/** Creates an endpoint. Returns it with its plain secret. */
export async function makeEndpoint(
  db: Database,
  projectId: string,
  {
    url,
    id = newId(),
    secret = makeSecret(),
    ...fields
  }: { url: string; id?: string; secret?: string } & Partial<EndpointFields>,
): Promise<EndpointRow & { secret: string }> {
  const row = await insertEndpoint(db.knex, projectId, {
    id,
    name: 'endpoint',
    owner_id: null,
    description: '',
    authentication: null,
    timeout_ms: 10_000,
    concurrency: null,
    strategy: null,
    secrets: [secretRecord(secret, null, id)],
    url,
    ...fields,
  });
  return { ...row, secret };
}

/** Creates a subscription, by default to everything. Returns its id. */
export async function makeSubscription(
  db: Database,
  projectId: string,
  {
    endpointId,
    eventTypes = ['*'],
    filter = null,
    fn = null,
  }: {
    endpointId: string;
    eventTypes?: readonly string[];
    filter?: SubscriptionFilter | null;
    fn?: string | null;
  },
): Promise<string> {
  const fields = {
    name: 'subscription',
    endpoint_id: endpointId,
    event_types: eventTypes,
    filter,
    function: fn,
  };
  return (await insertSubscription(db.knex, projectId, fields)).id;
}

/** Creates a source of the type `memory`, which reads a queue of the test. */
export function makeSource(
  db: Database,
  projectId: string,
  {
    queue,
    name = queue,
    bodyFunction = null,
    workers = 1,
    ...fields
  }: {
    queue: string;
    name?: string;
    bodyFunction?: string | null;
    workers?: number;
    is_disabled?: boolean;
    keep_messages?: boolean;
  },
): Promise<SourceRow> {
  const id = newId();
  const pubSub = {
    type: 'memory',
    workers,
    memory: { queue, password: sealed('hunter2', ['sources', id, 'password']) },
  };
  return insertSource(db.knex, projectId, {
    id,
    name,
    type: 'pub_sub',
    pub_sub: pubSub,
    body_function: bodyFunction,
    is_disabled: false,
    ...fields,
  });
}
