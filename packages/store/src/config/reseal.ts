import type { Knex } from 'knex';
import { isSealed, openConnection, type Sealer } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import { isObject } from '@gateway/core/json';
import { withSecret } from './endpoint-secrets.js';
import type { EndpointRecord, SecretRecord, SourceRecord } from './snapshot.js';

const KINDS = ['endpoint secrets', 'endpoint authentications', 'source connections'] as const;
type Kind = (typeof KINDS)[number];

/** How many secrets of a kind were sealed with the new key, and how many were before. */
export interface ResealCount {
  readonly kind: Kind;
  readonly resealed: number;
  readonly already: number;
}

export interface ResealOptions {
  readonly from: Pick<Sealer, 'open'>;
  readonly to: Sealer;
  /** Connection schema of a source plugin; undefined when it is not installed: then every sealed text counts as a secret. */
  readonly connectionSchema: (type: string) => Readonly<Record<string, unknown>> | undefined;
  /** Only counts. */
  readonly dryRun: boolean;
}

/** Rows per update. */
const BATCH = 500;

/**
 * Seals every stored secret with the new key, all or nothing; safe to repeat. Locks: agents, endpoints and sources against writes until the commit, so that
 * no agent registers and no secret is stored meanwhile. A dry run locks nothing.
 *
 * @throws GatewayError `reseal_refused`, listing each secret that neither key opens; `agents_running` because agents could not open the new secrets
 */
export function resealSecrets(knex: Knex, { from, to, connectionSchema, dryRun }: ResealOptions): Promise<ResealCount[]> {
  return knex.transaction(async (trx) => {
    if (!dryRun) {
      // An agent that starts now waits for the commit to register; then its key opens nothing, and it ends.
      await trx.raw('lock table agents, endpoints, sources in share row exclusive mode');
      await requireNoAgents(trx);
    }
    const problems: { sentence: string }[] = [];
    const counts = KINDS.map((kind) => ({ kind, resealed: 0, already: 0 }));
    const resealerOf = (kind: Kind, thing: string) => (sealed: string) => {
      const count = counts.find((it) => it.kind === kind)!;
      if (tryOpen(to, sealed) !== undefined) {
        count.already++;
        return sealed;
      }
      const secret = tryOpen(from, sealed);
      if (secret === undefined) {
        problems.push({ sentence: thing });
        return sealed;
      }
      count.resealed++;
      return to.seal(secret);
    };

    const endpoints = (await readEndpoints(trx)).map(({ secrets, authentication, ...row }) => {
      const thing = `of the endpoint ${row.name} (${row.id}) in the project ${row.project_name}`;
      const reseal = resealerOf('endpoint secrets', `a secret ${thing}`);
      return {
        ...row,
        secrets: secrets.map((it: SecretRecord) => ({ ...it, value: reseal(it.value) })),
        authentication: authentication && withSecret(authentication, resealerOf('endpoint authentications', `the authentication ${thing}`)),
      };
    });
    const sources = (await readSources(trx)).map(({ pub_sub, ...row }) => {
      const thing = `the connection of the source ${row.name} (${row.id}) in the project ${row.project_name}`;
      const reseal = resealerOf('source connections', thing);
      const schema = connectionSchema(pub_sub.type);
      const connection = pub_sub[pub_sub.type];
      const changed = schema && isObject(connection) ? openConnection(connection, schema, reseal) : resealAll(connection, reseal);
      return { ...row, pub_sub: { ...pub_sub, [pub_sub.type]: changed } };
    });
    if (problems.length > 0) throw new GatewayError('reseal_refused', { problems });
    if (!dryRun) {
      await write(trx, 'endpoints', ['secrets', 'authentication'], endpoints);
      await write(trx, 'sources', ['pub_sub'], sources);
    }
    return counts;
  });
}

async function requireNoAgents(knex: Knex): Promise<void> {
  const rows = await knex('agents').whereRaw('expires_at > now()').orderBy('id').select<{ name: string }[]>('name');
  if (rows.length > 0) throw new GatewayError('agents_running', { names: rows.map(({ name }) => name) });
}

type Named<Row> = Row & { readonly project_id: string; readonly id: string; readonly name: string; readonly project_name: string };

/** Rows that are not deleted; secrets of others are never opened again. */
function live(knex: Knex, table: 'endpoints' | 'sources'): Knex.QueryBuilder {
  return knex(`${table} as t`)
    .join('projects as p', 'p.id', 't.project_id')
    .whereNull('t.deleted_at')
    .whereNull('p.deleted_at')
    .orderBy(['t.project_id', 't.id'])
    .select('t.project_id', 't.id', 't.name', 'p.name as project_name');
}

function readEndpoints(knex: Knex): Promise<Named<Pick<EndpointRecord, 'secrets' | 'authentication'>>[]> {
  return live(knex, 'endpoints').select('t.secrets', 't.authentication');
}

function readSources(knex: Knex): Promise<Named<Pick<SourceRecord, 'pub_sub'>>[]> {
  return live(knex, 'sources').select('t.pub_sub');
}

/** Writes JSON columns of rows in batches, by primary key. A JSON null becomes null. */
async function write<Column extends string>(
  knex: Knex,
  table: string,
  columns: readonly Column[],
  rows: readonly (Readonly<Record<Column, unknown>> & { readonly project_id: string; readonly id: string })[],
): Promise<void> {
  for (let at = 0; at < rows.length; at += BATCH) {
    const batch = rows.slice(at, at + BATCH);
    await knex.raw(
      `update ${table} t set ${columns.map((name) => `${name} = nullif(u.${name}::jsonb, 'null')`).join(', ')}
       from unnest(?::uuid[], ?::uuid[], ${columns.map(() => '?::text[]').join(', ')}) as u(project_id, id, ${columns.join(', ')})
       where t.project_id = u.project_id and t.id = u.id`,
      [
        batch.map((row) => row.project_id),
        batch.map((row) => row.id),
        ...columns.map((name) => batch.map((row) => JSON.stringify(row[name]))),
      ],
    );
  }
}

function tryOpen({ open }: Pick<Sealer, 'open'>, sealed: string): string | undefined {
  try {
    return open(sealed);
  } catch {
    return undefined;
  }
}

/** Replaces every sealed text in a value. */
function resealAll(value: unknown, reseal: (sealed: string) => string): unknown {
  if (typeof value === 'string') return isSealed(value) ? reseal(value) : value;
  if (Array.isArray(value)) return value.map((it) => resealAll(it, reseal));
  return isObject(value) ? Object.fromEntries(Object.entries(value).map(([name, it]) => [name, resealAll(it, reseal)])) : value;
}
