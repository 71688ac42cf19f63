import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isObject, jsonMistake } from '@gateway/core/json';
import { DevError } from './error.js';
import { lockFolder, stopLeftoverPostgres } from './folder-lock.js';
import { canEnter, postgresUser, type User } from './services/postgres-binaries.js';

/** The folder `./.gateway`, locked by this process. docs/start.md describes its files. */
export interface DevState {
  readonly files: DevFiles;
  /** `encryption_key` of the gateway, and the password of Postgres. */
  readonly secrets: { readonly encryptionKey: string; readonly password: string };
  /** Runs Postgres if we are root. */
  readonly postgresUser: User | undefined;
  readonly postgresHome: string;
  readonly postgresData: string;
  /** Why an existing state was deleted without --fresh. */
  readonly notice: string | undefined;
  unlock(): void;
}

type DevFiles = ReturnType<typeof filesIn>;

/** Ids, keys and addresses of what `gateway dev` has created: `.gateway/dev.json`. */
export interface DevRecord {
  /** A personal key for the management API. */
  readonly api_key?: string;
  readonly user?: { readonly email: string; readonly password: string };
  readonly project_id?: string;
  readonly source_id?: string;
  readonly endpoint_id?: string;
  /** The secret that the inbox verifies with. */
  readonly endpoint_secret?: string;
  readonly subscription_id?: string;
  /** The addresses that endpoint and source got. If they have others now, the user has changed them. */
  readonly inbox_url?: string;
  readonly queue_endpoint?: string;
  /** The source of each topic, by topic name. */
  readonly topics?: Readonly<Record<string, string>>;
  /** Where the data of Postgres is, if not in the folder. */
  readonly postgres_home?: string;
}

/** Holds the data of Postgres if its user cannot reach `./.gateway`. */
const ELSEWHERE = '/var/tmp/gateway-dev-';

/**
 * Locks `./.gateway`, creating it if needed, and reads it.
 *
 * @param isFresh deletes what it holds
 * @throws DevError when another process has locked it, or when its files are broken
 */
export async function openState({ isFresh }: { isFresh: boolean }): Promise<DevState> {
  const files = filesIn(resolve('.gateway'));
  const user = postgresUser();
  makeFolder(files.folder, user);
  const unlock = lockFolder(files.lock);
  try {
    let record = isFresh ? recordOrNothing(files) : readRecord(files);
    const data = join(record.postgres_home ?? files.postgres, 'data');
    await stopLeftoverPostgres(data);
    const notice = isFresh ? undefined : incomplete(files, record, existsSync(data));
    if (isFresh || notice !== undefined) {
      if (record.postgres_home?.startsWith(ELSEWHERE)) rmSync(record.postgres_home, { recursive: true, force: true });
      for (const name of readdirSync(files.folder)) {
        if (join(files.folder, name) !== files.lock) rmSync(join(files.folder, name), { recursive: true, force: true, maxRetries: 3 });
      }
      makeFolder(files.folder, user);
      record = {};
    }
    if (record.postgres_home === undefined && user && !canEnter(files.folder, user))
      record = updateRecord(files, { postgres_home: mkdtempSync(ELSEWHERE) });
    const postgresHome = record.postgres_home ?? files.postgres;
    const secrets = secretsIn(files) ?? {
      encryptionKey: randomBytes(32).toString('base64'),
      password: randomBytes(24).toString('base64url'),
    };
    return { files, secrets, postgresUser: user, postgresHome, postgresData: join(postgresHome, 'data'), notice, unlock };
  } catch (error) {
    unlock();
    throw error;
  }
}

function filesIn(folder: string) {
  const at = (name: string) => join(folder, name);
  return {
    folder,
    config: at('gateway.json'),
    record: at('dev.json'),
    log: at('dev.log'),
    postgresLog: at('postgres.log'),
    lock: at('lock'),
    postgres: at('postgres'),
  };
}

/** Other users may not read the folder. The user that runs Postgres must pass through it. */
function makeFolder(folder: string, user: User | undefined): void {
  try {
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, user ? 0o711 : 0o700);
    // It holds keys, which must not get into a repository.
    writeFileSync(join(folder, '.gitignore'), '*\n');
  } catch (cause) {
    const reason = (cause as Error).message;
    throw new DevError(`the folder for the state cannot be used: ${reason}`, 'start in a folder that you own and may write to', cause);
  }
}

/** The data of Postgres and its keys are useless without each other. Undefined if all or none of them exist. */
function incomplete(files: DevFiles, { api_key: apiKey }: DevRecord, hasData: boolean): string | undefined {
  if (!hasData && apiKey === undefined) return undefined;
  const missing = [
    ...(hasData ? [] : ['the data of Postgres']),
    ...(apiKey === undefined ? ['the API key, which is written at the end of a first start'] : []),
    ...(secretsIn(files) ? [] : [`the keys in ${files.config}`]),
  ];
  return missing.length === 0 ? undefined : `${files.folder} lacks ${missing.join(' and ')}. Starting with a new state.`;
}

function secretsIn(files: DevFiles): DevState['secrets'] | undefined {
  const { encryption_key: encryptionKey, database } = readConfigFile(files) as {
    encryption_key?: string;
    database?: { password?: string };
  };
  return encryptionKey && database?.password ? { encryptionKey, password: database.password } : undefined;
}

/** The content of `.gateway/gateway.json`. */
export function readConfigFile({ config }: DevFiles): Readonly<Record<string, unknown>> {
  return readPrivate(config, 'correct it, or start with --fresh');
}

export function readRecord({ record }: DevFiles): DevRecord {
  return readPrivate(record, 'start with --fresh, which deletes the state in the folder');
}

function recordOrNothing(files: DevFiles): DevRecord {
  try {
    return readRecord(files);
  } catch {
    return {};
  }
}

/** Adds to the record, and returns all of it. */
export function updateRecord(files: DevFiles, added: DevRecord): DevRecord {
  const record = { ...readRecord(files), ...added };
  writePrivate(files.record, record);
  return record;
}

/** Reads a file of `writePrivate`; an empty object if there is none. An error quotes nothing of the file: it holds secrets. */
function readPrivate(file: string, fix: string): Record<string, unknown> {
  if (!existsSync(file)) return {};
  const text = readFileSync(file, 'utf8');
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch (error) {
    throw new DevError(`${file} cannot be read: ${jsonMistake(text, error as Error)}`, fix);
  }
  throw new DevError(`${file} cannot be read: it holds no JSON object`, fix);
}

/** Replaces a file that only its owner may read. */
export function writePrivate(file: string, value: object): void {
  const temporary = `${file}.new`;
  rmSync(temporary, { force: true });
  writeFileSync(temporary, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(temporary, file);
}
