import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

export { alive } from '../support/processes.js';

/** The ids of the processes in which the sandboxes of a process run functions. */
export async function guestProcesses(parent: number = process.pid): Promise<number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,args=']);
  const rows = stdout.split('\n').map((row) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(row));
  return rows.flatMap((row) => (row && Number(row[2]) === parent && row[3]!.includes('child.js') ? [Number(row[1])] : []));
}
