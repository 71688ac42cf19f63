import fs from 'node:fs';

/** What the system says that a process holds. Its children, as those that run transform functions, are processes of their own and not in it. */
export interface Held {
  /** Megabytes in memory now, and at most so far. */
  readonly rssMb: number;
  readonly peakMb: number;
  /** Open files, sockets and pipes, and of these the sockets. */
  readonly handles: number;
  readonly sockets: number;
}

/** Reads `/proc`; undefined where a system has none. Throws when the process has ended. */
export function heldBy(pid: number): Held | undefined {
  if (!fs.existsSync('/proc/self/status')) return undefined;
  const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8');
  const megabytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) / 1024;
  const targets = fs.readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return fs.readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      return []; // it was closed meanwhile
    }
  });
  return {
    rssMb: megabytes('VmRSS'),
    peakMb: megabytes('VmHWM'),
    handles: targets.length,
    sockets: targets.filter((target) => target.startsWith('socket:')).length,
  };
}
