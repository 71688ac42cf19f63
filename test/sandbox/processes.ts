import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';

export { alive } from '../support/processes.js';

/** The ids of the processes in which the sandboxes of a process run functions. */
export async function guestProcesses(parent: number = process.pid): Promise<number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,args=']);
  const rows = stdout.split('\n').map((row) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(row));
  return rows.flatMap((row) => (row && Number(row[2]) === parent && row[3]!.includes('child.js') ? [Number(row[1])] : []));
}

/** The state of a process in one letter, as Linux tells it; undefined when it has ended, and elsewhere. */
export function stateOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.charAt(stat.lastIndexOf(')') + 2);
  } catch {
    return undefined;
  }
}
