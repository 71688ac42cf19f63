import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';

export { alive } from '../support/processes.js';

/** The pids of the processes that run functions for a process' sandboxes. */
export async function guestProcesses(parent: number = process.pid): Promise<number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,args=']);
  const rows = stdout.split('\n').map((row) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(row));
  return rows.flatMap((row) =>
    row && Number(row[2]) === parent && row[3]!.includes('child.js') ? [Number(row[1])] : [],
  );
}

/** A process' state as a letter on Linux; undefined if it has ended, and on other systems. */
export function stateOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.charAt(stat.lastIndexOf(')') + 2);
  } catch {
    return undefined;
  }
}
