import type { Knex } from 'knex';
import { isSealed, openConnection, type Sealer } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import { isObject } from '@gateway/core/json';
import { withSecret } from './endpoint-secrets.js';
import type { EndpointAuthentication, SecretRecord, SourceRecord } from './snapshot.js';

type Reseal = (sealed: string) => string;
/** Connection schema of a source plugin; undefined when it is not installed: then every sealed text counts as a secret. */
type SchemaOf = (type: string) => Readonly<Record<string, unknown>> | undefined;

const SEALED = [
  {
    kind: 'endpoint secrets',
    table: 'endpoint',
    column: 'secrets',
    thing: 'a secret',
    change: (secrets, reseal) => (secrets as SecretRecord[]).map((it) => ({ ...it, value: reseal(it.value) })),
  },
  {
    kind: 'endpoint authentications',
    table: 'endpoint',
    column: 'authentication',
    thing: 'the authentication',
    change: (authentication, reseal) => withSecret(authentication as EndpointAuthentication, reseal),
  },
  {
    kind: 'source connections',
    table: 'source',
    column: 'pub_sub',
    thing: 'the connection',
    change: (it, reseal, schemaOf) => {
      const pubSub = it as SourceRecord['pub_sub'];
      const connection = pubSub[pubSub.type];
      const schema = schemaOf(pubSub.type);
      const changed = schema && isObject(connection) ? openConnection(connection, schema, reseal) : resealAll(connection, reseal);
      return { ...pubSub, [pubSub.type]: changed };
    },
  },
] as const satisfies readonly {
  readonly change: (value: unknown, reseal: Reseal, schemaOf: SchemaOf) => unknown;
  readonly [name: string]: unknown;
}[];

/** How many secrets of a kind were sealed with the new key, and how many were before. */
export interface ResealCount {
  readonly kind: (typeof SEALED)[number]['kind'];
  readonly resealed: number;
  readonly already: number;
}

const BATCH = 500;

/**
 * Seals every stored secret with the new key, all or nothing; safe to repeat. Locks: agents, endpoints and sources against writes until the commit, so that
 * no agent registers and no secret is stored meanwhile. A dry run only counts, and locks nothing. Throws `reseal_refused`, `agents_running`.
 */
export function resealSecrets(
  knex: Knex,
  { from, to, connectionSchema, dryRun }: { from: Pick<Sealer, 'open'>; to: Sealer; connectionSchema: SchemaOf; dryRun: boolean },
): Promise<ResealCount[]> {
  return knex.transaction(async (trx) => {
    if (!dryRun) {
      // An agent that starts now waits for the commit to register; then its key opens nothing, and it ends.
      await trx.raw('lock table agents, endpoints, sources in share row exclusive mode');
      const names = await trx('agents').whereRaw('expires_at > now()').orderBy('id').pluck<string[]>('name');
      if (names.length > 0) throw new GatewayError('agents_running', { names });
    }
    const problems: { sentence: string }[] = [];
    const counts: ResealCount[] = [];
    for (const { kind, table, column, thing, change } of SEALED) {
      const count = { kind, resealed: 0, already: 0 };
      const rows = (await readSealed(trx, `${table}s`, column)).map(({ name, project_name, value, ...key }) => {
        const reseal = (sealed: string): string => {
          if (tryOpen(to, sealed) !== undefined) {
            count.already++;
            return sealed;
          }
          const secret = tryOpen(from, sealed);
          if (secret === undefined) {
            problems.push({ sentence: `${thing} of the ${table} ${name} (${key.id}) in the project ${project_name}` });
            return sealed;
          }
          count.resealed++;
          return to.seal(secret);
        };
        return { ...key, value: change(value, reseal, connectionSchema) };
      });
      if (!dryRun) await write(trx, `${table}s`, column, rows);
      counts.push(count);
    }
    if (problems.length > 0) throw new GatewayError('reseal_refused', { problems });
    return counts;
  });
}

interface SealedRow {
  readonly project_id: string;
  readonly id: string;
  readonly value: unknown;
}

/** The values of rows that are not deleted; secrets of others are never opened again. */
function readSealed(knex: Knex, table: string, column: string): Promise<(SealedRow & { name: string; project_name: string })[]> {
  return knex(`${table} as t`)
    .join('projects as p', 'p.id', 't.project_id')
    .whereNull('t.deleted_at')
    .whereNull('p.deleted_at')
    .whereNotNull(`t.${column}`)
    .orderBy(['t.project_id', 't.id'])
    .select('t.project_id', 't.id', 't.name', 'p.name as project_name', `t.${column} as value`);
}

/** Writes a JSON column in batches, by primary key. */
async function write(knex: Knex, table: string, column: string, rows: readonly SealedRow[]): Promise<void> {
  for (let at = 0; at < rows.length; at += BATCH) {
    const batch = rows.slice(at, at + BATCH);
    await knex.raw(
      `update ${table} t set ${column} = u.value::jsonb from unnest(?::uuid[], ?::uuid[], ?::text[]) as u(project_id, id, value)
       where t.project_id = u.project_id and t.id = u.id`,
      [batch.map((row) => row.project_id), batch.map((row) => row.id), batch.map((row) => JSON.stringify(row.value))],
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
function resealAll(value: unknown, reseal: Reseal): unknown {
  if (typeof value === 'string') return isSealed(value) ? reseal(value) : value;
  if (Array.isArray(value)) return value.map((it) => resealAll(it, reseal));
  return isObject(value) ? Object.fromEntries(Object.entries(value).map(([name, it]) => [name, resealAll(it, reseal)])) : value;
}
