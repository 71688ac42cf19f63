import { readFileSync } from 'node:fs';

/** Linux tells processor time to user programs in hundredths of a second, whatever the kernel counts in: see times(2) and proc(5). */
const MS_PER_TICK = 10;

/** Milliseconds of processor time that a process has used, all its threads together; undefined where the system does not tell. */
export function cpuTimeMs(pid: number): number | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name of the program stands in brackets, with whatever in it; utime and stime are the 12th and 13th word behind them.
    const words = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ticks = Number(words[11]) + Number(words[12]);
    return Number.isFinite(ticks) ? ticks * MS_PER_TICK : undefined;
  } catch {
    return undefined;
  }
}
