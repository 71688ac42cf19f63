import fs from 'node:fs';
import { PerformanceObserver } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { median, ms } from './figures.js';

/** A period in which the event loop had no other turn. */
interface Block {
  readonly wallMs: number;
  /**
   * The CPU time of its thread in the block. The rest of the block is due to other processes on the
   * machine.
   */
  readonly ownMs: number;
  /** The part of `ownMs` spent on garbage collection. */
  readonly gcMs: number;
}

/** The block with the most CPU time, and the longest one by the clock, whatever its cause. */
export interface Longest extends Block {
  readonly clockMs: number;
}

/** Shorter blocks are ignored. */
const SHORT_MS = 0.1;

/**
 * Watches the event loop of this process, and keeps it busy.
 *
 * @returns ends the watch
 */
export function watchBlocks(): () => Promise<Longest> {
  const turns: { at: number; wallMs: number; cpuMs: number }[] = [];
  const pauses: { startTime: number; duration: number }[] = [];
  const observer = new PerformanceObserver((list) => pauses.push(...list.getEntries()));
  observer.observe({ entryTypes: ['gc'] });
  let isWatching = true;
  let [at, cpu] = [performance.now(), cpuMs()];
  const turn = () => {
    if (isWatching) setImmediate(turn);
    const now = performance.now();
    if (now - at < SHORT_MS) return;
    const used = cpuMs();
    turns.push({ at, wallMs: now - at, cpuMs: used - cpu });
    [at, cpu] = [now, used];
  };
  setImmediate(turn);
  return async () => {
    isWatching = false;
    // The observer reports pauses a few turns late.
    for (let k = 0; k < 3; k++) await nextTurn();
    observer.disconnect();
    const blocks = turns.map((one): Block => {
      const ownMs = Math.min(one.wallMs, one.cpuMs);
      return {
        wallMs: one.wallMs,
        ownMs,
        gcMs: Math.min(ownMs, within(one.at, one.at + one.wallMs, pauses)),
      };
    });
    const longest = blocks.reduce((one, other) => (other.ownMs > one.ownMs ? other : one), {
      wallMs: 0,
      ownMs: 0,
      gcMs: 0,
    });
    return { ...longest, clockMs: Math.max(0, ...blocks.map(({ wallMs }) => wallMs)) };
  };
}

export function toldBlocks(all: readonly Longest[]): string {
  const worst = all.reduce((one, other) => (other.ownMs > one.ownMs ? other : one));
  const own = `median ${ms(median(all, ({ ownMs }) => ownMs).ownMs)}, worst ${ms(worst.ownMs)} (${ms(worst.gcMs)} of it garbage collection)`;
  const clock = `median ${ms(median(all, ({ clockMs }) => clockMs).clockMs)}, worst ${ms(Math.max(...all.map(({ clockMs }) => clockMs)))}`;
  return `longest block of the event loop, CPU time: ${own}; by the clock, with those who share the machine: ${clock}`;
}

function within(
  from: number,
  until: number,
  pauses: readonly { startTime: number; duration: number }[],
): number {
  return pauses.reduce(
    (sum, { startTime, duration }) =>
      sum + Math.max(0, Math.min(until, startTime + duration) - Math.max(from, startTime)),
    0,
  );
}

/**
 * The CPU time of the main thread on Linux. Helper threads, which collect garbage and compile
 * concurrently, block nothing.
 */
const schedstat =
  process.platform === 'linux'
    ? fs.openSync(`/proc/self/task/${process.pid}/schedstat`, 'r')
    : undefined;
const line = Buffer.alloc(64);

/** CPU time so far: of the main thread, or of the whole process where only that is available. */
function cpuMs(): number {
  // Makes the kernel update the figure of the running thread, otherwise updated every few
  // milliseconds.
  const { user, system } = process.cpuUsage();
  if (schedstat === undefined) return (user + system) / 1000;
  const length = fs.readSync(schedstat, line, 0, line.length, 0);
  return Number(line.toString('latin1', 0, length).split(' ', 1)[0]) / 1e6;
}
