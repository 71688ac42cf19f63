import type { Config } from '@gateway/core/config';
import type { TransformResult } from '@gateway/sandbox';
import type { IngestSource } from '../message/ingest-source.js';

/** Whether a call has ended its process. A function that throws is cheap and does not count, nor does a call that the machine was too busy to run. */
export function isOverrun(result: TransformResult): boolean {
  return result.kind === 'refused' && ['timeout', 'memory', 'crashed'].includes(result.code) && !result.starved;
}

/** Share of calls in the window that must overrun: a few messages that a function cannot handle do not stop its source. */
const SHARE = 0.1;

interface Window {
  readonly projectId: string;
  readonly sinceMs: number;
  calls: number;
  overruns: number;
  hadBreak: boolean;
}

/**
 * Counts overruns by source, whichever function it has. A window begins with an overrun, and lasts on while the source is never idle and overruns
 * at the rate of the rule.
 */
export class Overruns {
  readonly #windows = new Map<string, Window>();

  constructor(private readonly rule: ReturnType<typeof overrunRule>) {}

  /**
   * Counts a finished call. When the overruns of the project, without sources that rarely overrun, are too many, returns what happened, as part of
   * a sentence, and the sources to be paused; their counts then restart.
   */
  count(
    { id, projectId }: Pick<IngestSource, 'id' | 'projectId'>,
    result: TransformResult,
    nowMs = performance.now(),
  ): { readonly happened: string; readonly sourceIds: readonly string[] } | undefined {
    const overran = isOverrun(result);
    let window = this.#windows.get(id);
    if (!window && (!overran || this.rule.max === 0)) return undefined;
    if (!window || this.#isOver(window, nowMs)) {
      for (const [other, it] of this.#windows) if (this.#isOver(it, nowMs)) this.#windows.delete(other);
      if (!overran) return undefined;
      this.#windows.set(id, (window = { projectId, sinceMs: nowMs, calls: 0, overruns: 0, hadBreak: false }));
    }
    window.calls++;
    if (!overran) return undefined;
    window.overruns++;
    if (isRare(window)) return undefined;
    const found = [...this.#windows].filter(([, it]) => it.projectId === projectId && !isRare(it) && !this.#isOver(it, nowMs));
    const sum = (of: 'calls' | 'overruns') => found.reduce((all, [, it]) => all + it[of], 0);
    if (sum('overruns') < this.rule.max) return undefined;
    for (const [other] of found) this.#windows.delete(other);
    const seconds = Math.max(1, Math.ceil((nowMs - Math.min(...found.map(([, { sinceMs }]) => sinceMs))) / 1000));
    const whose = found.length === 1 ? 'its transform function' : `the transform functions of ${found.length} sources of its project`;
    const happened = `${sum('overruns')} of ${sum('calls')} calls of ${whose} overran within ${seconds} s`;
    return { happened, sourceIds: found.map(([other]) => other) };
  }

  /** The source has no messages for its function now. */
  idle({ id }: Pick<IngestSource, 'id'>): void {
    const window = this.#windows.get(id);
    if (window) window.hadBreak = true;
  }

  #isOver(window: Window, nowMs: number): boolean {
    return nowMs - window.sinceMs > this.rule.windowMs && (window.hadBreak || isRare(window));
  }
}

const isRare = ({ calls, overruns }: Pick<Window, 'calls' | 'overruns'>): boolean => overruns < SHARE * calls;

/** The settings: overruns within a window, 0: never. A window is at least twice as long as that many overruns take. */
export function overrunRule({ transform }: Pick<Config, 'transform'>) {
  const { deadline_ms: deadlineMs, pause_overruns: max, pause_window_seconds: windowSeconds } = transform;
  return { max, windowMs: Math.max(windowSeconds * 1000, 2 * max * deadlineMs) };
}
