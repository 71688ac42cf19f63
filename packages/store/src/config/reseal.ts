import type { Knex } from 'knex';
import { isSealed, type Sealer } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import { openConnection } from '@gateway/core/crypto';
import { isObject } from '@gateway/core/json';
import { withSecret } from './endpoint-secrets.js';
import type { EndpointRecord, SecretRecord, SourceRecord } from './snapshot.js';

/** How many secrets of a kind were sealed anew, and how many were sealed with the new key already. */
export interface ResealCount {
  readonly kind: 'endpoint secrets' | 'endpoint authentications' | 'source connections';
  readonly resealed: number;
  readonly already: number;
}

export interface ResealOptions {
  readonly from: Pick<Sealer, 'open'>;
  readonly to: Sealer;
  /** The schema of the connections of a source plugin; undefined when it is not installed: then what looks sealed is taken for a secret. */
  readonly connectionSchema: (type: string) => Readonly<Record<string, unknown>> | undefined;
  /** Counts and changes nothing. */
  readonly dryRun: boolean;
}

/** Rows that one statement writes. */
const BATCH = 500;

/**
 * Seals every stored secret anew, all or nothing. Running it again finds them sealed already. Locks: agents, endpoints and sources against writers (not against
 * readers) until the commit, so that no agent is entered and no secret is stored meanwhile; a dry run locks nothing.
 *
 * @throws GatewayError `reseal_refused` when a secret opens with neither key, naming each; `agents_running` when agents would read what they cannot open
 */
export function resealSecrets(knex: Knex, { from, to, connectionSchema, dryRun }: ResealOptions): Promise<ResealCount[]> {
  return knex.transaction(async (trx) => {
    if (!dryRun) {
      // An agent that starts now waits to be entered until the commit; then it finds that its key opens nothing, and ends.
      await trx.raw('lock table agents, endpoints, sources in share row exclusive mode');
      await refuseAgents(trx);
    }
    const problems: { sentence: string }[] = [];
    const counters = new Map<ResealCount['kind'], { resealed: number; already: number }>();
    const resealerOf = (kind: ResealCount['kind'], thing: string) => {
      const counter = counters.get(kind) ?? { resealed: 0, already: 0 };
      counters.set(kind, counter);
      return (sealed: string): string => {
        if (opens(to, sealed)) {
          counter.already++;
          return sealed;
        }
        try {
          const again = to.seal(from.open(sealed));
          counter.resealed++;
          return again;
        } catch {
          problems.push({ sentence: thing });
          return sealed;
        }
      };
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
      const reseal = resealerOf(
        'source connections',
        `the connection of the source ${row.name} (${row.id}) in the project ${row.project_name}`,
      );
      const schema = connectionSchema(pub_sub.type);
      const connection = pub_sub[pub_sub.type];
      const changed = schema && isObject(connection) ? openConnection(connection, schema, reseal) : resealAll(connection, reseal);
      return { ...row, pub_sub: { ...pub_sub, [pub_sub.type]: changed } };
    });
    if (problems.length > 0) throw new GatewayError('reseal_refused', { problems });
    if (!dryRun) {
      await writeEndpoints(trx, endpoints);
      await writeSources(trx, sources);
    }
    const kinds = ['endpoint secrets', 'endpoint authentications', 'source connections'] as const;
    return kinds.map((kind) => ({ kind, ...(counters.get(kind) ?? { resealed: 0, already: 0 }) }));
  });
}

async function refuseAgents(knex: Knex): Promise<void> {
  const rows = await knex('agents').whereRaw('expires_at > now()').orderBy('id').select<{ name: string }[]>('name');
  if (rows.length > 0) throw new GatewayError('agents_running', { names: rows.map(({ name }) => name) });
}

type Named<Row> = Row & { readonly project_id: string; readonly id: string; readonly name: string; readonly project_name: string };

/** What is deleted is never opened again. */
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

async function writeEndpoints(knex: Knex, rows: Awaited<ReturnType<typeof readEndpoints>>): Promise<void> {
  for (let at = 0; at < rows.length; at += BATCH) {
    const batch = rows.slice(at, at + BATCH);
    await knex.raw(
      `update endpoints e set secrets = u.secrets::jsonb, authentication = nullif(u.authentication::jsonb, 'null')
       from unnest(?::uuid[], ?::uuid[], ?::text[], ?::text[]) as u(project_id, id, secrets, authentication)
       where e.project_id = u.project_id and e.id = u.id`,
      [
        batch.map((row) => row.project_id),
        batch.map((row) => row.id),
        batch.map((row) => JSON.stringify(row.secrets)),
        // A JSON null is none.
        batch.map((row) => JSON.stringify(row.authentication)),
      ],
    );
  }
}

async function writeSources(knex: Knex, rows: Awaited<ReturnType<typeof readSources>>): Promise<void> {
  for (let at = 0; at < rows.length; at += BATCH) {
    const batch = rows.slice(at, at + BATCH);
    await knex.raw(
      `update sources s set pub_sub = u.pub_sub::jsonb
       from unnest(?::uuid[], ?::uuid[], ?::text[]) as u(project_id, id, pub_sub) where s.project_id = u.project_id and s.id = u.id`,
      [batch.map((row) => row.project_id), batch.map((row) => row.id), batch.map((row) => JSON.stringify(row.pub_sub))],
    );
  }
}

function opens({ open }: Pick<Sealer, 'open'>, sealed: string): boolean {
  try {
    open(sealed);
    return true;
  } catch {
    return false;
  }
}

/** Every sealed text in a value, replaced. */
function resealAll(value: unknown, reseal: (sealed: string) => string): unknown {
  if (typeof value === 'string') return isSealed(value) ? reseal(value) : value;
  if (Array.isArray(value)) return value.map((it) => resealAll(it, reseal));
  return isObject(value) ? Object.fromEntries(Object.entries(value).map(([name, it]) => [name, resealAll(it, reseal)])) : value;
}
