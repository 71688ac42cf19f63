import type { Config } from '@gateway/core/config';
import type { Log } from '@gateway/core/logging';
import type { TransformResult } from '@gateway/sandbox';
import { type NotificationFacts, pauseSource, resumeDueSources } from '@gateway/store/config';
import type { Database } from '@gateway/store/postgres';
import type { ConfigCache } from '../config/config-cache.js';
import type { IngestSource } from '../model/ingest-source.js';

export interface PausingOptions {
  readonly config: Pick<Config, 'transform'>;
  readonly database: Database;
  readonly store: ConfigCache;
  readonly log: Log;
  /** Name of this agent. */
  readonly agent: string;
  readonly notifier: { disabledFacts(reason: string): NotificationFacts | null; hurry(): void };
}

const JITTER_MS = 500;
const AGAIN_MS = 5_000;

/** Pauses sources in Postgres, so that all agents follow, and resumes them later. `pause` resolves with whether the source is paused, by any agent. */
export function pausing(options: PausingOptions): {
  pause(source: IngestSource, functionText: string, reason: string): Promise<boolean>;
  close(): void;
} {
  const { config, database, store, log, agent, notifier } = options;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  const resumeAfter = (ms: number): void => {
    clearTimeout(timer);
    if (!closed) timer = setTimeout(() => void resume(), Math.min(ms, 2 ** 31 - 1));
  };
  const resume = async (): Promise<void> => {
    try {
      for (const { id, project_id: projectId, name, pauses } of await resumeDueSources(database.pool))
        log.info({ source_id: id, project_id: projectId, source: name, pauses }, 'The pause of a source is over; it is tried again.');
    } catch (error) {
      log.warn({ error }, 'Paused sources could not be looked after; trying again.');
    }
    resumeAfter(AGAIN_MS);
  };
  const follow = (): void => {
    const waits = store.sources.flatMap(({ resumes_in_ms: ms }) => ms ?? []);
    if (waits.length > 0) resumeAfter(Math.max(0, Math.min(...waits)) + Math.random() * JITTER_MS);
    else clearTimeout(timer);
  };
  store.onChange(follow);

  return {
    async pause({ projectId, id }, bodyFunction, reason) {
      const seconds = config.transform.pause_seconds;
      const paused = await pauseSource(database.pool, projectId, id, {
        bodyFunction,
        reason,
        by: agent,
        seconds,
        facts: notifier.disabledFacts(reason),
      });
      if (paused) {
        const { resumes_at: resumesAt, pauses } = paused;
        log.warn(
          { source_id: id, project_id: projectId, reason, resumes_at: resumesAt.toISOString(), pauses },
          'A source is paused, because its transform function overruns again and again. Correct the function, or resume the source.',
        );
        notifier.hurry();
      }
      await store.refresh();
      return store.sources.some((source) => source.id === id && source.resumes_in_ms !== null);
    },
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

/** How many overruns stop a function. */
interface OverrunRule {
  /** Overruns within the window; 0: never. */
  readonly max: number;
  readonly windowMs: number;
}

/** Share of calls in the window that must overrun: a few messages that a function cannot handle do not stop its source. */
const SHARE = 0.1;

/** Whether a call has ended its process. A function that throws is cheap and does not count, nor does a call that the machine was too busy to run. */
export function isOverrun(result: TransformResult): boolean {
  return result.kind === 'refused' && ['timeout', 'memory', 'crashed'].includes(result.code) && !result.starved;
}

interface Window {
  readonly sinceMs: number;
  calls: number;
  overruns: number;
  /** The function was idle at some moment. */
  hadBreak: boolean;
}

/**
 * Counts overruns by function. A window begins with an overrun, so a function that never overruns costs one map lookup. It outlasts its time while the function is never
 * idle and overruns at the rate of the rule, since the sandbox makes functions that overrun wait for each other.
 */
export class Overruns {
  readonly #rule: OverrunRule;
  readonly #windows = new Map<string, Window>();

  constructor(rule: OverrunRule) {
    this.#rule = rule;
  }

  /** Counts a finished call. Returns what happened, as part of a sentence, if the function is to be stopped; the count then starts anew. */
  count(key: string, result: TransformResult, nowMs = performance.now()): string | undefined {
    const overran = isOverrun(result);
    let window = this.#windows.get(key);
    if (window && nowMs - window.sinceMs > this.#rule.windowMs && (window.hadBreak || isRare(window))) {
      this.#windows.delete(key);
      window = undefined;
    }
    if (!window) {
      if (!overran || this.#rule.max === 0) return undefined;
      this.#windows.set(key, (window = { sinceMs: nowMs, calls: 0, overruns: 0, hadBreak: false }));
    }
    window.calls++;
    if (!overran) return undefined;
    window.overruns++;
    if (window.overruns < this.#rule.max || isRare(window)) return undefined;
    this.#windows.delete(key);
    const seconds = Math.max(1, Math.ceil((nowMs - window.sinceMs) / 1000));
    return `${window.overruns} of ${window.calls} calls of its transform function overran within ${seconds} s`;
  }

  idle(key: string): void {
    const window = this.#windows.get(key);
    if (window) window.hadBreak = true;
  }

  forget(key: string): void {
    this.#windows.delete(key);
  }
}

function isRare({ calls, overruns }: Window): boolean {
  return overruns < SHARE * calls;
}

/** The rule of the settings. A window is at least twice as long as that many overruns take. */
export function overrunRule({ transform }: Pick<Config, 'transform'>): OverrunRule {
  const { deadline_ms: deadlineMs, pause_overruns: max, pause_window_seconds: windowSeconds } = transform;
  return { max, windowMs: Math.max(windowSeconds * 1000, 2 * max * deadlineMs) };
}
