import { generateKeyPairSync, randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type pg from 'pg';
import {
  isBound,
  isSealed,
  openConnection,
  type Open,
  type SecretPlace,
  type Sealer,
} from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import { newId } from '@gateway/core/events';
import { isObject } from '@gateway/core/json';
import { liftTimeouts, withTransaction } from '../postgres/advisory-lock.js';
import {
  updateEndpoint,
  type EndpointAuthentication,
  type EndpointHeader,
  type EndpointRow,
  type SecretRecord,
  type StoredClientCertificate,
} from './endpoints.js';
import type { HttpSettings, SourceRecord } from './sources.js';

const LIVE_SECRETS_MAX = 5;

/**
 * @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function generateSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/** Without an expiry. Stores nothing. */
export function sealSecret(
  secret: string,
  endpointId: string,
  { seal }: Pick<Sealer, 'seal'>,
): SecretRecord {
  return {
    id: newId(),
    value: seal(secret, ['endpoints', endpointId, 'secrets']),
    created_at: new Date().toISOString(),
    expires_at: null,
  };
}

/** A new key for `ed25519` of a secret. */
export function sealKey(
  endpointId: string,
  { seal }: Pick<Sealer, 'seal'>,
): NonNullable<SecretRecord['ed25519']> {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const pkcs8 = privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64');
  return {
    public_key: Buffer.from(publicKey.export({ format: 'jwk' }).x!, 'base64url').toString('base64'),
    private_key: seal(pkcs8, ['endpoints', endpointId, 'secrets']),
  };
}

/** Still sealed. */
export function liveSecrets(secrets: readonly SecretRecord[], now = new Date()): SecretRecord[] {
  return secrets.filter(({ expires_at }) => expires_at === null || new Date(expires_at) > now);
}

/**
 * The new secret comes first; the others expire within `overlapMs`. Locks the endpoint's row,
 * because concurrent rotations could otherwise lose secrets.
 * @throws GatewayError `conflict` for more than `LIVE_SECRETS_MAX` live secrets
 */
export function rotateSecret(
  knex: Knex,
  projectId: string,
  id: string,
  fresh: SecretRecord,
  overlapMs: number,
): Promise<EndpointRow | undefined> {
  return knex.transaction(async (trx) => {
    const locked = await lockSecrets(trx, projectId, id);
    if (!locked) return undefined;
    const end = new Date(Date.now() + overlapMs);
    const old = liveSecrets(locked).map((secret) =>
      secret.expires_at !== null && new Date(secret.expires_at) < end
        ? secret
        : { ...secret, expires_at: end.toISOString() },
    );
    const secrets = [fresh, ...liveSecrets(old)];
    if (secrets.length <= LIVE_SECRETS_MAX) return updateEndpoint(trx, projectId, id, { secrets });
    throw new GatewayError('conflict', {
      sentence: `the endpoint would have ${secrets.length} live secrets, more than ${LIVE_SECRETS_MAX}`,
      fix: 'wait until one has expired, or expire them now with an overlap of 0 (`--overlap 0`, over the API `"expiration": 0`)',
    });
  });
}

/**
 * Updates an endpoint, and gives its newest secret a key unless it has one. Locks the endpoint's
 * row, because a concurrent rotation could otherwise be lost.
 */
export function updateWithKey(
  knex: Knex,
  projectId: string,
  id: string,
  fields: Parameters<typeof updateEndpoint>[3],
  makeKey: () => NonNullable<SecretRecord['ed25519']>,
): Promise<EndpointRow | undefined> {
  return knex.transaction(async (trx) => {
    const [newest, ...others] = (await lockSecrets(trx, projectId, id)) ?? [];
    if (!newest || newest.ed25519) return updateEndpoint(trx, projectId, id, fields);
    const secrets = [{ ...newest, ed25519: makeKey() }, ...others];
    return updateEndpoint(trx, projectId, id, { ...fields, secrets });
  });
}

async function lockSecrets(
  trx: Knex.Transaction,
  projectId: string,
  id: string,
): Promise<readonly SecretRecord[] | undefined> {
  const query = trx('endpoints').where({ project_id: projectId, id }).whereNull('deleted_at');
  const row = await query.forUpdate().first<Pick<EndpointRow, 'secrets'> | undefined>('secrets');
  return row?.secrets;
}

const SECRET_FIELDS = {
  api_key: 'header_value',
  basic: 'password',
  bearer: 'token',
  oauth2: 'client_secret',
  secret_url: 'url',
} as const satisfies Record<EndpointAuthentication['type'], string>;

/** In a copy. */
export function withSecret(
  authentication: EndpointAuthentication,
  change: (secret: string) => string,
): EndpointAuthentication {
  const { type } = authentication;
  const field = SECRET_FIELDS[type];
  const settings = (authentication as Readonly<Record<string, unknown>>)[type] as Record<
    string,
    string
  >;
  return {
    type,
    [type]: { ...settings, [field]: change(settings[field]!) },
  } as EndpointAuthentication;
}

/** Undefined without the plugin: then every sealed string in the connection counts as a secret. */
type SchemaOf = (type: string) => Readonly<Record<string, unknown>> | undefined;

const SEALED = [
  {
    kind: 'endpoint secrets',
    table: 'endpoint',
    column: 'secrets',
    thing: 'a secret',
    change: (secrets, id, reseal) =>
      (secrets as SecretRecord[]).map((it) => ({
        ...it,
        value: reseal(it.value, ['endpoints', id, 'secrets']),
        ...(it.ed25519 && {
          ed25519: {
            ...it.ed25519,
            private_key: reseal(it.ed25519.private_key, ['endpoints', id, 'secrets']),
          },
        }),
      })),
  },
  {
    kind: 'endpoint headers',
    table: 'endpoint',
    column: 'headers',
    thing: 'a header',
    change: (headers, id, reseal) =>
      (headers as EndpointHeader[]).map((header) => ({
        ...header,
        value: reseal(header.value, ['endpoints', id, 'headers']),
      })),
  },
  {
    kind: 'endpoint authentications',
    table: 'endpoint',
    column: 'authentication',
    thing: 'the authentication',
    change: (authentication, id, reseal) =>
      withSecret(authentication as EndpointAuthentication, (sealed) =>
        reseal(sealed, ['endpoints', id, 'authentication']),
      ),
  },
  {
    kind: 'endpoint client certificates',
    table: 'endpoint',
    column: 'mtls_client_cert',
    thing: 'the client key',
    change: (certificate, id, reseal) => {
      const it = certificate as StoredClientCertificate;
      return { ...it, client_key: reseal(it.client_key, ['endpoints', id, 'mtls_client_cert']) };
    },
  },
  {
    kind: 'source connections',
    table: 'source',
    column: 'pub_sub',
    thing: 'the connection',
    change: (it, id, reseal, schemaOf) => {
      const pubSub = it as SourceRecord['pub_sub'];
      const connection = pubSub[pubSub.type];
      const schema = schemaOf(pubSub.type);
      const changed =
        schema && isObject(connection)
          ? openConnection(connection, schema, id, reseal)
          : resealAll(connection, ['sources', id], reseal);
      const codec = pubSub.codec && resealAll({ codec: pubSub.codec }, ['sources', id], reseal);
      return { ...pubSub, [pubSub.type]: changed, ...(codec as object | undefined) };
    },
  },
  {
    kind: 'source verifiers',
    table: 'source',
    column: 'http',
    thing: 'the verifier',
    change: (it, id, reseal, schemaOf) => {
      const http = it as HttpSettings;
      const schema = schemaOf('http');
      return schema
        ? openConnection({ ...http }, schema, id, reseal)
        : { ...http, verifier: resealAll(http.verifier, ['sources', id], reseal) };
    },
  },
  {
    kind: 'notification channels',
    table: 'notification_channel',
    column: 'settings',
    thing: 'the settings',
    change: (settings, id, reseal) => resealAll(settings, ['notification_channels', id], reseal),
  },
] as const satisfies readonly {
  readonly change: (value: unknown, id: string, reseal: Open, schemaOf: SchemaOf) => unknown;
  readonly [name: string]: unknown;
}[];

/** Sealed with the new key for their location, in this run or before it. */
interface ResealCount {
  readonly kind: (typeof SEALED)[number]['kind'] | 'shard passwords';
  readonly resealed: number;
  readonly already: number;
}

/**
 * From what was changed or, of shards, added last. False if no secret is stored.
 * @throws GatewayError `not_unsealable` if it was sealed with another key
 */
export async function openOneSecret(
  pool: pg.Pool,
  { open }: Pick<Sealer, 'open'>,
): Promise<boolean> {
  const { rows } = await pool.query<{
    place: SecretPlace;
    value: unknown;
  }>(
    `(select json_build_array('endpoints', id, 'secrets') as place, secrets->0->'value' as value, 1 as rank from endpoints
      where deleted_at is null and secrets->0->>'value' like 'sealed:%' order by updated_at desc limit 1)
     union all
     (select json_build_array('sources', id), pub_sub->(pub_sub->>'type'), 2 from sources
      where deleted_at is null and pub_sub::text like '%"sealed:%' order by updated_at desc limit 1)
     union all
     (select json_build_array('sources', id), http->'verifier', 2 from sources
      where deleted_at is null and http::text like '%"sealed:%' order by updated_at desc limit 1)
     union all
     (select json_build_array('notification_channels', id), settings, 3 from notification_channels
      where deleted_at is null and settings::text like '%"sealed:%' order by updated_at desc limit 1)
     union all
     (select json_build_array('shards', name, 'password'), to_jsonb(password), 4 from shards
      where password is not null order by created_at desc limit 1)
     order by rank limit 1`,
  );
  const [secret] = rows;
  if (!secret) return false;
  resealAll(secret.value, secret.place, open);
  return true;
}

const BATCH = 500;

/**
 * All or nothing. Safe to repeat. Locks the tables with secrets, and those of agents in all data
 * planes, against writes until the commit, and deletes responses stored for idempotency keys. A dry
 * run only counts, without locks.
 *
 * @throws GatewayError `reseal_refused` if a secret opens with neither key; `agents_running`
 */
export function resealSecrets(
  knex: Knex,
  { dryRun, dataPlanes, ...options }: ResealOptions,
): Promise<ResealCount[]> {
  const run = (check?: () => Promise<unknown>) =>
    knex.transaction(async (trx) => {
      const counts = await resealAllSecrets(trx, { dryRun, ...options });
      await check?.();
      return counts;
    });
  return dryRun ? run() : withoutAgents(dataPlanes, run);
}

interface ResealOptions {
  readonly from: Pick<Sealer, 'open'>;
  readonly to: Sealer;
  readonly connectionSchema: SchemaOf;
  readonly dryRun: boolean;
  /** Where agents register. */
  readonly dataPlanes: readonly pg.Pool[];
}

/**
 * No agent can register on any shard meanwhile. One that starts registers after `work`, and then
 * exits, because its old key no longer opens anything. `check` rejects if a lock on the agents is
 * lost.
 * @throws GatewayError `agents_running`
 */
async function withoutAgents<T>(
  [pool, ...others]: readonly pg.Pool[],
  work: (check: () => Promise<unknown>) => Promise<T>,
): Promise<T> {
  if (!pool) return work(() => Promise.resolve());
  return withTransaction(pool, async (client) => {
    await liftTimeouts(client);
    await client.query('lock table agents in share row exclusive mode');
    const { rows } = await client.query<{ name: string }>(
      'select name from agents where expires_at > now() order by id',
    );
    if (rows.length > 0)
      throw new GatewayError('agents_running', { names: rows.map(({ name }) => name) });
    return withoutAgents(others, (checkOthers) =>
      work(async () => {
        await client.query('select');
        await checkOthers();
      }),
    );
  });
}

async function resealAllSecrets(
  trx: Knex.Transaction,
  { from, to, connectionSchema, dryRun }: Omit<ResealOptions, 'dataPlanes'>,
): Promise<ResealCount[]> {
  if (!dryRun)
    await trx.raw(
      'lock table endpoints, sources, notification_channels, shards in share row exclusive mode',
    );
  const problems: { sentence: string }[] = [];
  const counts: ResealCount[] = [];
  const start = (kind: ResealCount['kind']) => {
    const count = { kind, resealed: 0, already: 0 };
    counts.push(count);
    const resealOf =
      (thing: string): Open =>
      (sealed, place) => {
        const known = tryOpen(to, sealed, place);
        if (known !== undefined && isBound(sealed)) {
          count.already++;
          return sealed;
        }
        const secret = known ?? tryOpen(from, sealed, place);
        if (secret === undefined) {
          problems.push({ sentence: thing });
          return sealed;
        }
        count.resealed++;
        return to.seal(secret, place);
      };
    return resealOf;
  };
  for (const { kind, table, column, thing, change } of SEALED) {
    const resealOf = start(kind);
    const rows = (await readSealed(trx, `${table}s`, column)).map(
      ({ name, project_name, value, ...key }) => {
        const reseal = resealOf(
          `${thing} of the ${table} ${name} (${key.id}) in the project ${project_name}`,
        );
        return { ...key, value: change(value, key.id, reseal, connectionSchema) };
      },
    );
    if (!dryRun) await write(trx, `${table}s`, column, rows);
  }
  const resealOf = start('shard passwords');
  const shards = await trx('shards')
    .whereNotNull('password')
    .orderBy('name')
    .select<{ name: string; password: string }[]>('name', 'password');
  for (const { name, password: sealed } of shards) {
    const password = resealOf(`the password of the shard ${name}`)(sealed, [
      'shards',
      name,
      'password',
    ]);
    if (!dryRun) await trx('shards').where({ name }).update({ password });
  }
  if (problems.length > 0) throw new GatewayError('reseal_refused', { problems });
  // Sealed responses are not resealed: they are kept for only a day.
  if (!dryRun) await trx('idempotent_requests').delete();
  return counts;
}

interface SealedRow {
  readonly project_id: string;
  readonly id: string;
  readonly value: unknown;
}

/** Without deleted rows, whose secrets are never opened again. */
function readSealed(
  knex: Knex,
  table: string,
  column: string,
): Promise<(SealedRow & { name: string; project_name: string })[]> {
  return knex(`${table} as t`)
    .join('projects as p', 'p.id', 't.project_id')
    .whereNull('t.deleted_at')
    .whereNull('p.deleted_at')
    .whereNotNull(`t.${column}`)
    .orderBy(['t.project_id', 't.id'])
    .select('t.project_id', 't.id', 't.name', 'p.name as project_name', `t.${column} as value`);
}

async function write(
  knex: Knex,
  table: string,
  column: string,
  rows: readonly SealedRow[],
): Promise<void> {
  for (let at = 0; at < rows.length; at += BATCH) {
    const batch = rows.slice(at, at + BATCH);
    await knex.raw(
      `update ${table} t set ${column} = u.value::jsonb from unnest(?::uuid[], ?::uuid[], ?::text[]) as u(project_id, id, value)
       where t.project_id = u.project_id and t.id = u.id`,
      [
        batch.map((row) => row.project_id),
        batch.map((row) => row.id),
        batch.map((row) => JSON.stringify(row.value)),
      ],
    );
  }
}

function tryOpen(
  { open }: Pick<Sealer, 'open'>,
  sealed: string,
  place: SecretPlace,
): string | undefined {
  try {
    return open(sealed, place);
  } catch {
    return undefined;
  }
}

function resealAll(value: unknown, place: SecretPlace, reseal: Open): unknown {
  if (typeof value === 'string') return isSealed(value) ? reseal(value, place) : value;
  if (Array.isArray(value))
    return value.map((it, index) => resealAll(it, [...place, String(index)], reseal));
  return isObject(value)
    ? Object.fromEntries(
        Object.entries(value).map(([name, it]) => [name, resealAll(it, [...place, name], reseal)]),
      )
    : value;
}
