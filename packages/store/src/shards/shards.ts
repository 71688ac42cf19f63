import { GatewayError } from '@gateway/core/errors';
import type pg from 'pg';
import type { Querier } from '../postgres/connection.js';

/** In the database of the settings `database.*`, beside the control plane. */
export const DEFAULT_SHARD = 'default';

/** The password is sealed. */
export interface ShardAddress {
  readonly host: string;
  readonly port: number;
  readonly username: string;
  readonly password: string | null;
  readonly database: string;
  /** As in `database.options`. */
  readonly options: string | null;
}

export interface ShardRow {
  readonly name: string;
  /** Null for the database of the settings `database.*`. */
  readonly address: ShardAddress | null;
  /** Null for the one that the role finds first. */
  readonly schema: string | null;
  /** Citus distributes the schema. */
  readonly isCitus: boolean;
  /** Gets no new projects. */
  readonly isDraining: boolean;
  readonly createdAt: Date;
}

const COLUMNS = `name, case when host is not null then json_build_object('host', host, 'port', port, 'username', username, 'password', password, 'database', database, 'options', options) end as address,
  schema_name as schema, is_citus as "isCitus", is_draining as "isDraining", created_at as "createdAt"`;

/** The default one first, the others by name. */
export async function listShards(pool: Querier): Promise<ShardRow[]> {
  const { rows } = await pool.query<ShardRow>({
    name: 'list-shards',
    text: `select ${COLUMNS} from shards order by name <> '${DEFAULT_SHARD}', name`,
  });
  return rows;
}

/** Throws `not_found`. */
export async function requireShard(pool: Querier, name: string): Promise<ShardRow> {
  const shard = (await listShards(pool)).find((it) => it.name === name);
  if (shard) return shard;
  const fix = '`gateway shards list` shows the names';
  throw new GatewayError('not_found', { thing: 'shard', id: name, fix });
}

export function conflict(sentence: string, fix: string): GatewayError<'conflict'> {
  return new GatewayError('conflict', { sentence, fix });
}

export type NewShard = Pick<ShardRow, 'name' | 'address' | 'schema' | 'isCitus'>;

/** False if one with its name exists. */
export async function insertShard(
  pool: Querier,
  { name, address, schema, isCitus }: NewShard,
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `insert into shards (name, host, port, username, password, database, options, schema_name, is_citus)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing`,
    [
      name,
      address?.host ?? null,
      address?.port ?? null,
      address?.username ?? null,
      address?.password ?? null,
      address?.database ?? null,
      address?.options ?? null,
      schema,
      isCitus,
    ],
  );
  return rowCount === 1;
}

/** The password is sealed. */
export async function setAddress(
  pool: Querier,
  name: string,
  { host, port, username, password, database, options }: ShardAddress,
): Promise<void> {
  await pool.query(
    `update shards set host = $2, port = $3, username = $4, password = $5, database = $6, options = $7 where name = $1`,
    [name, host, port, username, password, database, options],
  );
}

/** Even of a deleted project. */
export async function readProjectShard(
  pool: Pick<pg.Pool, 'query'>,
  projectId: string,
): Promise<string | undefined> {
  const { rows } = await pool.query<{ shard: string }>({
    name: 'project-shard',
    text: 'select shard from projects where id = $1',
    values: [projectId],
  });
  return rows[0]?.shard;
}
