import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  envOf,
  resolveConfig,
  type FlagValues,
  type Resolved,
  type SettingsTable,
} from '@gateway/core/config';
import { isObject, jsonMistake } from '@gateway/core/json';
import { isFixed } from '@gateway/cli/config/dev-settings';
import { DevError } from './services/dev-error.js';
import { LOOPBACK, type Ports } from './services/ports.js';
import {
  POSTGRES_DATABASE,
  POSTGRES_USER,
  type PostgresOptions,
  canEnter,
  postgresUser,
  type SystemUser,
} from './services/postgres.js';

/** The state in `./.gateway`, locked by this process. docs/start.md describes its files. */
export interface DevState {
  readonly record: DevRecord;
  readonly encryptionKey: string;
  readonly postgres: PostgresOptions;
  /** Why the state was deleted without --fresh; undefined if it was kept. */
  readonly notice: string | undefined;
  /** Adds fields to the record and saves its file. */
  save(added: DevRecord): void;
  unlock(): void;
}

/** Ids, keys and addresses in `.gateway/dev.json`. */
interface DevRecord {
  /** The personal API key of `user`. */
  readonly api_key?: string;
  readonly user?: { readonly email: string; readonly password: string };
  readonly project_id?: string;
  readonly source_id?: string;
  readonly endpoint_id?: string;
  /** The secret for verifying signatures in the inbox. */
  readonly endpoint_secret?: string;
  readonly subscription_id?: string;
  /** The addresses set by the last run. Any other address was set by the user. */
  readonly inbox_url?: string;
  readonly queue_endpoint?: string;
  /** Source ids by topic name. */
  readonly topics?: Readonly<Record<string, string>>;
  /** The Postgres folder, if outside `.gateway`. */
  readonly postgres_home?: string;
}

const FOLDER = '.gateway';
const CONFIG = join(FOLDER, 'gateway.json');
const RECORD = join(FOLDER, 'dev.json');
export const LOG = join(FOLDER, 'dev.log');

/** The prefix of the Postgres folder if the user that runs Postgres cannot enter `./.gateway`. */
const ELSEWHERE = '/var/tmp/gateway-dev-';

/**
 * Creates, locks and reads `./.gateway`. With `isFresh`, deletes its contents. Throws a DevError if
 * another process has locked it or its files are broken.
 */
export async function openState({ isFresh }: { isFresh: boolean }): Promise<DevState> {
  const user = postgresUser();
  makeFolder(user);
  const unlock = lockFolder(join(FOLDER, 'lock'));
  try {
    let record: DevRecord = {};
    try {
      record = readPrivate(RECORD, 'start with --fresh, which deletes the state in the folder');
    } catch (error) {
      if (!isFresh) throw error;
    }
    const save = (added: DevRecord) => writePrivate(RECORD, (record = { ...record, ...added }));
    const dataIn = (home = resolve(FOLDER, 'postgres')) => join(home, 'data');
    await stopLeftoverPostgres(dataIn(record.postgres_home));
    const missing = missingIn(record, dataIn(record.postgres_home));
    const notice =
      missing.length === 0 || isFresh
        ? undefined
        : `${FOLDER} lacks ${missing.join(' and ')}. Starting with a new state.`;
    if (isFresh || notice !== undefined) {
      if (record.postgres_home?.startsWith(ELSEWHERE))
        rmSync(record.postgres_home, { recursive: true, force: true });
      for (const name of readdirSync(FOLDER)) {
        if (name !== 'lock')
          rmSync(join(FOLDER, name), { recursive: true, force: true, maxRetries: 3 });
      }
      makeFolder(user);
      record = {};
    }
    if (record.postgres_home === undefined && user && !canEnter(resolve(FOLDER), user))
      save({ postgres_home: mkdtempSync(ELSEWHERE) });
    const home = record.postgres_home ?? resolve(FOLDER, 'postgres');
    const { encryptionKey, password } = readSecrets() ?? {
      encryptionKey: randomBytes(32).toString('base64'),
      password: randomBytes(24).toString('base64url'),
    };
    return {
      get record() {
        return record;
      },
      encryptionKey,
      postgres: { user, home, data: dataIn(home), log: resolve(FOLDER, 'postgres.log'), password },
      notice,
      save,
      unlock,
    };
  } catch (error) {
    unlock();
    throw error;
  }
}

/** Creates the folder, unreadable to other users, but accessible to the user that runs Postgres. */
function makeFolder(user: SystemUser | undefined): void {
  try {
    mkdirSync(FOLDER, { recursive: true });
    chmodSync(FOLDER, user ? 0o711 : 0o700);
    // The folder contains keys, which must not be committed.
    writeFileSync(join(FOLDER, '.gitignore'), '*\n');
  } catch (cause) {
    const reason = (cause as Error).message;
    throw new DevError(
      `the state folder cannot be used: ${reason}`,
      'start in a folder that you own and can write to',
      cause,
    );
  }
}

/**
 * Returns the missing parts of the state, which are useless without each other. For a new folder,
 * which lacks all parts, returns an empty list.
 */
function missingIn({ api_key: apiKey }: DevRecord, data: string): string[] {
  const parts = {
    'the data of Postgres': existsSync(data),
    'the API key, which is written at the end of a first start': apiKey !== undefined,
    [`the keys in ${CONFIG}`]: readSecrets() !== undefined,
  };
  const missing = Object.entries(parts).flatMap(([part, exists]) => (exists ? [] : [part]));
  return missing.length === 3 ? [] : missing;
}

function readSecrets(): { encryptionKey: string; password: string } | undefined {
  const { encryption_key: encryptionKey, database } = readConfigFile() as {
    encryption_key?: string;
    database?: { password?: string };
  };
  return encryptionKey && database?.password
    ? { encryptionKey, password: database.password }
    : undefined;
}

/**
 * Writes `.gateway/gateway.json`, keeping the user's settings, and resolves the settings from
 * flags, environment variables and that file.
 */
export function resolveSettings(
  { encryptionKey, postgres }: DevState,
  { numbers }: Ports,
  flags: FlagValues,
  rows: SettingsTable,
): Resolved {
  const fixed: FileContent = {
    encryption_key: encryptionKey,
    root_path: '',
    server: {
      http: { bind: LOOPBACK, port: numbers.api, agent_port: numbers.agent, ssl: false },
      auth: { api_keys: [], basic: [], native: true },
    },
    database: {
      host: LOOPBACK,
      port: numbers.postgres,
      username: POSTGRES_USER,
      password: postgres.password,
      database: POSTGRES_DATABASE,
    },
    kv: { type: 'in-memory' },
    delivery: { allowed_networks: ['127.0.0.0/8', '::1/128'] },
    // Private networks are allowed, because a developer's brokers can be in any of them.
    source: {
      allowed_networks: [
        '127.0.0.0/8',
        '::1/128',
        '10.0.0.0/8',
        '172.16.0.0/12',
        '192.168.0.0/16',
        'fc00::/7',
      ],
    },
  };
  writePrivate(CONFIG, merged(readConfigFile(), fixed));
  const env = { ...process.env };
  for (const [key, row] of Object.entries(rows)) if (isFixed(key)) delete env[envOf(key, row)];
  return resolveConfig({ command: 'dev', flags, env, file: `./${CONFIG}`, rows });
}

type FileContent = Readonly<Record<string, unknown>>;

function readConfigFile(): FileContent {
  return readPrivate(CONFIG, 'correct it, or start with --fresh');
}

/**
 * Reads a file written by `writePrivate`, or returns an empty object if there is none. Errors do
 * not quote the file, which contains secrets.
 */
function readPrivate(file: string, fix: string): FileContent {
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

/** Replaces a file atomically with one that has mode 0600. */
function writePrivate(file: string, value: object): void {
  const temporary = `${file}.new`;
  rmSync(temporary, { force: true });
  writeFileSync(temporary, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(temporary, file);
}

const STOP_MS = 15_000;

/**
 * Locks the folder, replacing the lock of an exited process. Returns a function that unlocks it.
 * Throws a DevError if another process holds the lock. The lock includes the command, because after
 * a crash another process can have the same pid.
 */
export function lockFolder(file: string): () => void {
  let holder = { pid: 0, command: '' };
  try {
    holder = JSON.parse(readFileSync(file, 'utf8')) as typeof holder;
  } catch {
    // There is no lock file, or a crash has truncated it.
  }
  const { pid, command } = holder;
  if (pid !== process.pid && commandOf(pid) === command) {
    throw new DevError(
      `gateway dev is already running in this folder (process ${pid})`,
      `use that one, stop it with Ctrl-C or \`kill ${pid}\`, or start this one in another folder`,
    );
  }
  const own = { pid: process.pid, command: commandOf(process.pid) ?? '' };
  writeFileSync(file, JSON.stringify(own), { mode: 0o600 });
  return () => rmSync(file, { force: true });
}

/**
 * Stops the Postgres that a killed `gateway dev` left running. If the pid file has another
 * process's pid, removes the file: Postgres would mistake that process for a running Postgres.
 */
async function stopLeftoverPostgres(data: string): Promise<void> {
  const file = join(data, 'postmaster.pid');
  if (process.platform === 'win32' || !existsSync(file)) return;
  // The first line is the pid. SIGINT requests a fast shutdown:
  // https://www.postgresql.org/docs/17/server-shutdown.html
  const pid = Number.parseInt(readFileSync(file, 'utf8'), 10);
  const isLeftover = () => commandOf(pid)?.includes(data) ?? false;
  if (!isLeftover()) return rmSync(file, { force: true });
  process.kill(pid, 'SIGINT');
  for (const deadline = Date.now() + STOP_MS; Date.now() < deadline; await sleep(20))
    if (!isLeftover()) return;
  throw new DevError(
    `the Postgres of an earlier start (process ${pid}) does not stop`,
    `stop it with \`kill -9 ${pid}\`, then start again`,
  );
}

/** Returns a process's command line, or undefined on Windows or if there is no such process. */
function commandOf(pid: number): string | undefined {
  if (!(pid > 0)) return undefined;
  if (existsSync('/proc/self')) {
    try {
      // A zombie's command line is empty, so it counts as not running.
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8') || undefined;
    } catch {
      return undefined;
    }
  }
  const { status, stdout } = spawnSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], {
    encoding: 'utf8',
  });
  return status === 0 ? stdout : undefined;
}

/** Deeply. What is no object in `over` replaces what is in `base`. */
function merged(base: Record<string, unknown>, over: object): Record<string, unknown> {
  const result = { ...base };
  for (const [key, value] of Object.entries(over) as [string, unknown][]) {
    const before = base[key];
    result[key] = isObject(value) && isObject(before) ? merged(before, value) : value;
  }
  return result;
}
