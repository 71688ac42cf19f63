import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DevError } from './error.js';

interface Holder {
  readonly pid: number;
  /** Its command line. After a crash, another process may have the pid. */
  readonly command: string;
}

const STOP_MS = 15_000;

/**
 * Locks the folder for this process. A lock whose process has ended is replaced.
 *
 * @returns unlocks the folder
 * @throws DevError when another process holds the lock
 */
export function lockFolder(file: string): () => void {
  const own: Holder = { pid: process.pid, command: commandOf(process.pid) ?? '' };
  const { pid, command } = holderIn(file);
  if (pid !== own.pid && commandOf(pid) === command) {
    throw new DevError(
      `gateway dev runs in this folder already (process ${pid})`,
      `use that one, stop it with Ctrl-C or \`kill ${pid}\`, or start this one in another folder`,
    );
  }
  writeFileSync(file, JSON.stringify(own), { mode: 0o600 });
  return () => rmSync(file, { force: true });
}

/** No process, if there is no lock, or if a crash has truncated it. */
function holderIn(file: string): Holder {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Holder;
  } catch {
    return { pid: 0, command: '' };
  }
}

/**
 * Stops the Postgres that a killed `gateway dev` left running on this data. Removes a pid file that names another process: Postgres would take that
 * process for a running Postgres and not start.
 */
export async function stopLeftoverPostgres(data: string): Promise<void> {
  const file = join(data, 'postmaster.pid');
  if (process.platform === 'win32' || !existsSync(file)) return;
  // The first line is the pid. https://www.postgresql.org/docs/17/server-shutdown.html
  const pid = Number.parseInt(readFileSync(file, 'utf8'), 10);
  const isLeftover = () => commandOf(pid)?.includes(data) ?? false;
  if (!isLeftover()) return rmSync(file, { force: true });
  process.kill(pid, 'SIGINT');
  for (const deadline = Date.now() + STOP_MS; Date.now() < deadline; await sleep(20)) if (!isLeftover()) return;
  throw new DevError(`the Postgres of an earlier start (process ${pid}) does not stop`, `end it with \`kill -9 ${pid}\`, then start again`);
}

/** The command line of a process; undefined if there is no such process, and on Windows. */
function commandOf(pid: number): string | undefined {
  if (!(pid > 0)) return undefined;
  if (existsSync('/proc/self')) {
    try {
      // The command line of a zombie is empty.
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8') || undefined;
    } catch {
      return undefined;
    }
  }
  const { status, stdout } = spawnSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
  return status === 0 ? stdout : undefined;
}
