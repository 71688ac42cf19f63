import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { jsonMistake } from '@gateway/core/json';
import { isObject } from '@gateway/core/json';
import { Problem } from './problem.js';

/** Where `gateway dev` keeps its state. docs/start.md tells what is what. */
export interface Folder {
  readonly path: string;
  /** A configuration file: `--config .gateway/gateway.json` points any other command at this instance. */
  readonly config: string;
  /** API key, ids and secrets of what was created. */
  readonly memory: string;
  /** Lines of server and agent. */
  readonly log: string;
  readonly postgresLog: string;
  /** Held by the running process. */
  readonly lock: string;
  readonly postgres: string;
}

/** The state below a folder; makes nothing. */
export function folderIn(parent: string): Folder {
  const path = resolve(parent, '.gateway');
  const at = (name: string) => join(path, name);
  return {
    path,
    config: at('gateway.json'),
    memory: at('dev.json'),
    log: at('dev.log'),
    postgresLog: at('postgres.log'),
    lock: at('lock'),
    postgres: at('postgres'),
  };
}

/**
 * Makes the folder and closes it to other users of the machine.
 *
 * @param passable Postgres runs as another user, who has to pass through to its data
 * @throws Problem when it cannot be made or is somebody else's
 */
export function makeFolder(folder: Folder, { passable }: { passable: boolean }): void {
  try {
    mkdirSync(folder.path, { recursive: true });
    chmodSync(folder.path, passable ? 0o711 : 0o700);
    // It holds keys: no repository is to take it in by accident.
    writeFileSync(join(folder.path, '.gitignore'), '*\n');
  } catch (cause) {
    throw new Problem(`the folder for the state cannot be used: ${(cause as Error).message}`, {
      fix: 'start it where you may write, or see who owns .gateway',
      cause,
    });
  }
}

/** Deletes what is in the folder, but for the lock. */
export function emptyFolder(folder: Folder): void {
  for (const name of readdirSync(folder.path)) {
    if (join(folder.path, name) !== folder.lock) rmSync(join(folder.path, name), { recursive: true, force: true, maxRetries: 3 });
  }
}

/**
 * Reads a file that `writePrivate` wrote; an empty object when there is none.
 *
 * @param fix what to do about a file that is broken
 * @throws Problem, which quotes nothing of the file: it holds secrets
 */
export function readPrivate(file: string, fix: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw new Problem(`${file} cannot be read: ${(cause as Error).message}`, { fix, cause });
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Problem(`${file} cannot be read: ${jsonMistake(text, error as Error)}`, { fix });
  }
  if (!isObject(value)) throw new Problem(`${file} cannot be read: it holds no JSON object`, { fix });
  return value;
}

/** Writes a file that only its owner may read, all of it or nothing. */
export function writePrivate(file: string, value: object): void {
  const fresh = `${file}.new`;
  rmSync(fresh, { force: true });
  writeFileSync(fresh, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(fresh, file);
}
