import fs from 'node:fs';

/** Resources of a process, without its children, such as those that run transform functions. */
export interface Held {
  /** Resident memory in megabytes: current and peak. */
  readonly rssMb: number;
  readonly peakMb: number;
  /** Open files, sockets and pipes; the number of sockets. */
  readonly handles: number;
  readonly sockets: number;
}

/** Reads `/proc`; undefined on systems without it. Throws if the process has ended. */
export function heldBy(pid: number): Held | undefined {
  if (!fs.existsSync('/proc/self/status')) return undefined;
  const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8');
  const megabytes = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) / 1024;
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
