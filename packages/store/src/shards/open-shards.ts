import type { Open } from '@gateway/core/crypto';
import { explainDatabaseError, GatewayError, isGatewayError } from '@gateway/core/errors';
import { oneAtATime } from '@gateway/core/process';
import type { DatabaseSettings } from '../postgres/connection.js';
import { openDatabase, type Database } from '../postgres/database.js';
import { requireReady } from '../postgres/migrate.js';
import type { Planes } from '../postgres/planes.js';
import { requireSessions } from '../postgres/pooler.js';
import { DEFAULT_SHARD, listShards, type ShardRow } from './shards.js';

type ShardPlace = Pick<ShardRow, 'name' | 'address' | 'schema' | 'isCitus'>;

export interface ShardPlanes extends Planes {
  readonly shard: string;
}

export interface Shard {
  readonly name: string;
  readonly planes: ShardPlanes;
  readonly database: Database;
  /** To name its address in errors. */
  readonly settings: DatabaseSettings;
}

/** Undefined for the default shard, which has the tables of both planes. */
export function migratedAs({ name }: Pick<Shard, 'name'>): string | undefined {
  return name === DEFAULT_SHARD ? undefined : name;
}

/**
 * `shard_unusable` for an error of a shard's database, whose fix would name the settings of another
 * one. An error of the default shard is explained by these settings; others are returned unchanged.
 */
export function explainShardError(
  error: unknown,
  { name, settings }: Pick<Shard, 'name' | 'settings'>,
): Error {
  const explained = explainDatabaseError(error, settings);
  if (name === DEFAULT_SHARD) return explained;
  if (!isGatewayError(explained) || !/^(database_|tls_file$)/.test(explained.code))
    return explained;
  return new GatewayError('shard_unusable', { name, reason: explained.message }, { cause: error });
}

/**
 * @throws GatewayError `shard_unusable`, or another for the default shard or a missing migration
 */
export async function requireReadyShard(
  shard: Pick<Shard, 'name' | 'database' | 'settings'>,
  isMigrated = true,
): Promise<void> {
  const { database, settings } = shard;
  try {
    if (isMigrated) await requireReady(database, settings, migratedAs(shard));
    else await requireSessions(database, settings);
  } catch (error) {
    throw explainShardError(error, shard);
  }
}

/**
 * For the first shard that cannot be used; else `error` itself.
 *
 * @param isMigrated whether all migrations must have been applied
 */
export async function explainShards(
  error: unknown,
  shards: readonly Shard[],
  isMigrated = true,
): Promise<unknown> {
  if (isGatewayError(error)) return error;
  const asked = await Promise.allSettled(
    shards.map((shard) => requireReadyShard(shard, isMigrated)),
  );
  const [first] = asked.filter((it) => it.status === 'rejected');
  return first ? first.reason : error;
}

interface OpenShardsOptions {
  readonly settings: DatabaseSettings;
  readonly open: Open;
  readonly poolSize: number;
  readonly name: string;
}

/**
 * The default shard shares the pools of the control plane, so that a gateway with one Postgres has
 * no more connections than without shards.
 */
export class Shards {
  readonly #shards = new Map<string, Shard>();
  /** Without the default one, to notice when it changes. */
  readonly #places = new Map<string, string>();
  /** Read for each connection: a new password needs no new pools. */
  readonly #passwords = new Map<string, string>();
  readonly #closing = new Set<Promise<void>>();
  readonly #listeners = new Set<() => void>();

  /** @param control closed by the caller */
  constructor(
    readonly control: Database,
    private readonly options: OpenShardsOptions,
  ) {
    this.#shards.set(DEFAULT_SHARD, this.#shardOf(DEFAULT_SHARD, control, options.settings));
  }

  /** The default one first. */
  get all(): readonly Shard[] {
    return [...this.#shards.values()];
  }

  /**
   * Opens shards that are new in the control plane, and closes those that were removed or have
   * another address. Connects to none.
   *
   * @throws GatewayError `not_unsealable` if a password was sealed with another key
   */
  readonly refresh = oneAtATime(async () => {
    const rows = (await listShards(this.control.pool)).filter(({ name }) => name !== DEFAULT_SHARD);
    // Before anything changes: a password that was sealed with another key fails here.
    const found = rows.map((row) => ({ row, settings: shardSettings(row, this.options) }));
    const places = new Map(rows.map((row) => [row.name, placeOf(row)]));
    for (const [name, place] of this.#places) {
      if (places.get(name) === place) continue;
      this.#places.delete(name);
      const { database } = this.#shards.get(name)!;
      this.#shards.delete(name);
      // Not awaited, because closing waits for running statements.
      const closed = database
        .close()
        .catch(() => undefined)
        .finally(() => this.#closing.delete(closed));
      this.#closing.add(closed);
    }
    for (const { row, settings } of found) {
      const { name } = row;
      this.#passwords.set(name, settings.password ?? '');
      if (this.#places.has(name)) continue;
      this.#shards.set(name, this.#open(row, settings));
      this.#places.set(name, places.get(name)!);
    }
    for (const listener of this.#listeners) listener();
  });

  /** After each read. Returns a function that removes it. */
  onRead(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** @throws GatewayError `shard_unknown` if this process has not read the shard */
  of(name: string): Shard {
    const shard = this.#shards.get(name);
    if (!shard) throw new GatewayError('shard_unknown', { name });
    return shard;
  }

  /**
   * Reads the shards again if this process does not know it.
   *
   * @throws GatewayError `shard_unknown` if it does not exist
   */
  async find(name: string): Promise<Shard> {
    if (!this.#shards.has(name)) await this.refresh();
    return this.of(name);
  }

  /** Without the default one. */
  async close(): Promise<void> {
    const open = [...this.#places.keys()].map((name) => this.#shards.get(name)!.database.close());
    await Promise.all([...open, ...this.#closing]);
  }

  #open(row: ShardPlace, settings: DatabaseSettings): Shard {
    const { poolSize, name } = this.options;
    const database = openDatabase(settings, {
      poolSize,
      name,
      ...(row.address?.password && { password: () => this.#passwords.get(row.name) ?? '' }),
      ...sessionOf(row),
    });
    return this.#shardOf(row.name, database, settings);
  }

  #shardOf(name: string, database: Database, settings: DatabaseSettings): Shard {
    const planes = { shard: name, control: this.control.pool, data: database.pool };
    return { name, planes, database, settings };
  }
}

/** Without the password, but whether there is one. */
function placeOf({ address, schema, isCitus }: ShardPlace): string {
  return JSON.stringify([
    address && { ...address, password: address.password !== null },
    schema,
    isCitus,
  ]);
}

/** `database.*` with the shard's own address. */
export function shardSettings(
  { name, address }: Pick<ShardRow, 'name' | 'address'>,
  { settings, open }: Pick<OpenShardsOptions, 'settings' | 'open'>,
): DatabaseSettings {
  if (!address) return settings;
  const { password, options, ...place } = address;
  const {
    direct: _direct,
    options: _options,
    password: _password,
    password_file: _file,
    password_command: _command,
    ...shared
  } = settings;
  return {
    ...shared,
    ...place,
    ...(password !== null && { password: open(password, ['shards', name, 'password']) }),
    ...(options !== null && { options }),
  };
}

/** For `openDatabase`. */
export function sessionOf({ schema, isCitus }: Pick<ShardRow, 'schema' | 'isCitus'>) {
  return { schema: schema ?? undefined, plans: isCitus ? 'custom' : 'generic' } as const;
}
