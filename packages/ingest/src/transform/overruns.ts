import type { Config } from '@gateway/core/config';
import type { TransformResult } from '@gateway/sandbox';
import type { IngestSource } from '../message/ingest-source.js';

/**
 * Calls that threw do not count, because throwing is cheap, nor do calls that had too little CPU
 * time.
 */
export function isOverrun(result: TransformResult): boolean {
  return (
    result.kind === 'refused' &&
    ['timeout', 'memory', 'crashed'].includes(result.code) &&
    !result.starved
  );
}

/** In a window: a few difficult messages must not pause a source. */
const SHARE = 0.1;

interface Window {
  readonly projectId: string;
  readonly sinceMs: number;
  calls: number;
  overruns: number;
  hadBreak: boolean;
}

/**
 * By source. A window starts with an overrun and lasts for the rule's time, or longer if the source
 * was never idle and at least a tenth of its calls overran.
 */
export class Overruns {
  readonly #windows = new Map<string, Window>();

  constructor(private readonly rule: ReturnType<typeof overrunRule>) {}

  /**
   * If the project has too many overruns, returns a clause that describes them and the sources to
   * pause, and restarts the counts of these sources. Sources that rarely overrun are excluded.
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
      for (const [other, it] of this.#windows)
        if (this.#isOver(it, nowMs)) this.#windows.delete(other);
      if (!overran) return undefined;
      this.#windows.set(
        id,
        (window = { projectId, sinceMs: nowMs, calls: 0, overruns: 0, hadBreak: false }),
      );
    }
    window.calls++;
    if (!overran) return undefined;
    window.overruns++;
    if (isRare(window)) return undefined;
    const found = [...this.#windows].filter(
      ([, it]) => it.projectId === projectId && !isRare(it) && !this.#isOver(it, nowMs),
    );
    const sum = (of: 'calls' | 'overruns') => found.reduce((all, [, it]) => all + it[of], 0);
    if (sum('overruns') < this.rule.max) return undefined;
    for (const [other] of found) this.#windows.delete(other);
    const seconds = Math.max(
      1,
      Math.ceil((nowMs - Math.min(...found.map(([, { sinceMs }]) => sinceMs))) / 1000),
    );
    const whose =
      found.length === 1
        ? 'its transform function'
        : `the transform functions of ${found.length} sources of its project`;
    const happened = `${sum('overruns')} of ${sum('calls')} calls of ${whose} overran within ${seconds} s`;
    return { happened, sourceIds: found.map(([other]) => other) };
  }

  /** The source has no messages for its function. */
  idle({ id }: Pick<IngestSource, 'id'>): void {
    const window = this.#windows.get(id);
    if (window) window.hadBreak = true;
  }

  #isOver(window: Window, nowMs: number): boolean {
    return nowMs - window.sinceMs > this.rule.windowMs && (window.hadBreak || isRare(window));
  }
}

const isRare = ({ calls, overruns }: Pick<Window, 'calls' | 'overruns'>): boolean =>
  overruns < SHARE * calls;

/**
 * The maximum number of overruns per window, 0 for no limit, and the length of the window: at least
 * twice the time that these overruns take.
 */
export function overrunRule({ transform }: Pick<Config, 'transform'>) {
  const {
    deadline_ms: deadlineMs,
    pause_overruns: max,
    pause_window_seconds: windowSeconds,
  } = transform;
  return { max, windowMs: Math.max(windowSeconds * 1000, 2 * max * deadlineMs) };
}
