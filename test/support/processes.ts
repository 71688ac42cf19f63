import { spawnSync } from 'node:child_process';
import fs from 'node:fs';

/** Returns parent and state of every process, from /proc on Linux and from ps elsewhere. */
export function processes(): Map<number, { parent: number; state: string }> {
  const found = new Map<number, { parent: number; state: string }>();
  if (!fs.existsSync('/proc/self/stat')) {
    for (const line of spawnSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' })
      .stdout.trim()
      .split('\n')) {
      const [pid, parent, status = ''] = line.trim().split(/\s+/);
      found.set(Number(pid), { parent: Number(parent), state: status.charAt(0) });
    }
    return found;
  }
  for (const pid of fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
      const [status = '', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      found.set(Number(pid), { parent: Number(parent), state: status });
    } catch {
      // It has ended meanwhile.
    }
  }
  return found;
}

/** True if a process runs. A dead one keeps its id until its parent reaps it. */
export function alive(pid: number): boolean {
  return (processes().get(pid)?.state ?? 'Z') !== 'Z';
}

/** The command line of a process; empty if it has ended. */
export function commandOf(pid: number): string {
  if (!fs.existsSync('/proc/self/stat'))
    return spawnSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' }).stdout.trim();
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}
