import type { Open } from '@gateway/core/crypto';
import { explainDatabaseError, GatewayError, isGatewayError } from '@gateway/core/errors';
import { silentLog, type Log } from '@gateway/core/logging';
import { oneAtATime, repeat } from '@gateway/core/process';
import type { DatabaseSettings } from '../postgres/connection.js';
import { openDatabase, type Database } from '../postgres/database.js';
import { requireReady } from '../postgres/migrate.js';
import type { Planes } from '../postgres/planes.js';
import { requireSessions } from '../postgres/pooler.js';
import { DEFAULT_SHARD, listShards, type ShardRow } from './shards.js';

type ShardPlace = Pick<ShardRow, 'name' | 'address' | 'schema' | 'isCitus'>;

/** The planes of a project on a shard. */
export interface ShardPlanes extends Planes {
  readonly shard: string;
}

/** A shard with its open pools. */
export interface Shard {
  readonly name: string;
  readonly planes: ShardPlanes;
  readonly database: Database;
  /** The settings of the database, to name its address in errors. */
  readonly settings: DatabaseSettings;
}

/** Undefined for the default shard, which has the tables of both planes. */
export function migratedAs({ name }: Pick<Shard, 'name'>): string | undefined {
  return name === DEFAULT_SHARD ? undefined : name;
}

/**
 * `shard_unusable` for an error of a shard's database, whose fix would name the settings of another
 * one. An error of the default shard is explained by these settings; any other error is returned
 * unchanged.
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
 * A shard must have persistent sessions, its schema and all migrations.
 *
 * @throws GatewayError `shard_unusable`, or another for the default shard or a missing migration
 */
export async function requireReadyShard(
  shard: Pick<Shard, 'name' | 'database' | 'settings'>,
  isMigrated = true,
): Promise<void> {
  const { database, settings } = shard;
  try {
    if (isMigrated) await requireReady(database, settings, silentLog, migratedAs(shard));
    else await requireSessions(database, settings);
  } catch (error) {
    throw explainShardError(error, shard);
  }
}

/**
 * For the first shard that cannot be used. Without any, returns `error`.
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
  /** Opens the sealed passwords. */
  readonly open: Open;
  readonly poolSize: number;
  /** The application name of the sessions. */
  readonly name: string;
}

/** The interval at which added, changed and removed shards are noticed. */
const FOLLOW_MS = 5_000;
/** The errors of a shard that no wait repairs. */
const UNUSABLE = ['migration_pending', 'database_newer', 'shard_schema'] as const;

/**
 * The open shards of a process. The default shard shares the pools of the control plane, so that a
 * gateway with one Postgres has no more connections than without shards.
 */
export class Shards {
  readonly #shards = new Map<string, Shard>();
  /** The place of each shard but the default one, to notice when it changes. */
  readonly #places = new Map<string, string>();
  /** Read for each connection, so that a new password needs no new pools. */
  readonly #passwords = new Map<string, string>();
  readonly #closing = new Set<Promise<void>>();
  readonly #listeners = new Set<() => void>();
  #stopFollowing: (() => Promise<void>) | undefined;

  /** @param control the database of the control plane, which the caller closes */
  constructor(
    readonly control: Database,
    private readonly options: OpenShardsOptions,
  ) {
    this.#shards.set(DEFAULT_SHARD, this.#shardOf(DEFAULT_SHARD, control, options.settings));
  }

  /** All shards, the default one first. */
  get all(): readonly Shard[] {
    return [...this.#shards.values()];
  }

  /**
   * Reads the shards as they are stored now, opens the new ones and closes those that were removed
   * or have another address. Connects to none. Rejects if the control plane is unreachable.
   *
   * @throws GatewayError `not_unsealable` if a password was sealed with another key
   */
  readonly refresh = oneAtATime(async () => {
    const rows = (await listShards(this.control.pool)).filter(({ name }) => name !== DEFAULT_SHARD);
    // Read before anything changes: a password that was sealed with another key fails here.
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

  /** Reads the shards every few seconds until `close`. A failed read keeps the known ones. */
  follow(log: Pick<Log, 'warn'>): void {
    this.#stopFollowing = repeat(() => this.refresh().then(() => FOLLOW_MS), {
      afterMs: FOLLOW_MS,
      retryMs: FOLLOW_MS,
      failed(error, isFirst) {
        if (isFirst)
          log.warn({ error }, 'Could not read the shards; continuing with the known ones.');
      },
    });
  }

  /** Calls the listener after each read. Returns a function that removes it. */
  onRead(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Checks the shards other than the control plane's. One that is away is only logged.
   *
   * @throws GatewayError if a shard lacks a migration, or is newer than this version
   */
  async requireUsable(log: Pick<Log, 'warn'>): Promise<void> {
    const checks = this.all.map(async (shard) => {
      const { name, database, settings } = shard;
      const as = migratedAs(shard);
      if (as === undefined) return;
      try {
        await requireReady(database, settings, log, as);
      } catch (error) {
        if (UNUSABLE.some((code) => isGatewayError(error, code))) throw error;
        log.warn(
          { shard: name, error },
          'A shard is unavailable; requests for its projects fail until it recovers.',
        );
      }
    });
    await Promise.all(checks);
  }

  /** @throws GatewayError `shard_unknown` if this process has not read the shard */
  of(name: string): Shard {
    const shard = this.#shards.get(name);
    if (!shard) throw new GatewayError('shard_unknown', { name });
    return shard;
  }

  /**
   * Reads the shards again if this process does not know the shard.
   *
   * @throws GatewayError `shard_unknown` if it does not exist
   */
  async find(name: string): Promise<Shard> {
    if (!this.#shards.has(name)) await this.refresh();
    return this.of(name);
  }

  /** Stops following, and closes the pools of all shards but the default one. */
  async close(): Promise<void> {
    await this.#stopFollowing?.();
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

/** Includes whether there is a password, but not the password. */
function placeOf({ address, schema, isCitus }: ShardPlace): string {
  return JSON.stringify([
    address && { ...address, password: address.password !== null },
    schema,
    isCitus,
  ]);
}

/** The settings of `database.*`, with the shard's own address. */
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

/** The options of `openDatabase` that depend on the shard. */
export function sessionOf({ schema, isCitus }: Pick<ShardRow, 'schema' | 'isCitus'>) {
  return { schema: schema ?? undefined, plans: isCitus ? 'custom' : 'generic' } as const;
}
