import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Problem } from './problem.js';

const FAST_MS = 10_000;
const IMMEDIATE_MS = 5_000;

/**
 * Stops a Postgres that a killed process left behind on this data. A pid file that names a process of somebody else, which got the number since, is
 * removed: Postgres would take it for another Postgres.
 */
export async function stopLeftover(data: string): Promise<void> {
  const file = join(data, 'postmaster.pid');
  const pid = pidIn(file);
  if (pid === undefined || process.platform === 'win32') return;
  const command = commandOf(pid);
  if (command === undefined) return; // Postgres knows a dead one's file for what it is
  if (!command.includes(data)) return rmSync(file, { force: true });
  if (await stops(pid, 'SIGINT', FAST_MS)) return;
  if (await stops(pid, 'SIGQUIT', IMMEDIATE_MS)) return;
  throw new Problem(`a Postgres that was left behind (process ${pid}) does not stop`, {
    fix: `end it with \`kill -9 ${pid}\`, then start again`,
  });
}

/** https://www.postgresql.org/docs/17/server-shutdown.html: the first line of the file is the pid. */
function pidIn(file: string): number | undefined {
  try {
    const pid = Number.parseInt(readFileSync(file, 'utf8'), 10);
    return pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** The command line of a process; undefined when there is none of that pid. */
function commandOf(pid: number): string | undefined {
  try {
    // A dead process that nobody has reaped yet has an empty one.
    if (existsSync('/proc/self')) return readFileSync(`/proc/${pid}/cmdline`, 'utf8') || undefined;
  } catch {
    return undefined;
  }
  const { status, stdout } = spawnSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
  return status === 0 ? stdout : undefined;
}

/** Sends the signal and waits for the end. */
async function stops(pid: number, signal: NodeJS.Signals, withinMs: number): Promise<boolean> {
  try {
    process.kill(pid, signal);
  } catch {
    return true;
  }
  for (const deadline = Date.now() + withinMs; Date.now() < deadline; await sleep(20)) if (commandOf(pid) === undefined) return true;
  return false;
}
