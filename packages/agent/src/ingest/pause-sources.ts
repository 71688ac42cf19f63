import type { Config } from '@gateway/core/config';
import type { TransformResult } from '@gateway/sandbox';
import { type NotificationFacts, pauseSource, resumeDueSources } from '@gateway/store/config';
import type { AgentContext } from '../config/agent-context.js';
import type { IngestSource } from '../model/ingest.js';

export interface PausingOptions extends Pick<AgentContext, 'config' | 'database' | 'configCache' | 'log'> {
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
  const { config, database, configCache, log, agent, notifier } = options;
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
    const waits = configCache.sources.flatMap(({ resumes_in_ms: ms }) => ms ?? []);
    if (waits.length > 0) resumeAfter(Math.max(0, Math.min(...waits)) + Math.random() * JITTER_MS);
    else clearTimeout(timer);
  };
  configCache.onChange(follow);

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
      await configCache.refresh();
      return configCache.sources.some((source) => source.id === id && source.resumes_in_ms !== null);
    },
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
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
  hadBreak: boolean;
}

/** Counts overruns by function. A window begins with an overrun, and lasts on while the function is never idle and overruns at the rate of the rule. */
export class Overruns {
  readonly #windows = new Map<string, Window>();

  constructor(private readonly rule: ReturnType<typeof overrunRule>) {}

  /** Counts a finished call. Returns what happened, as part of a sentence, if the function is to be stopped; the count then restarts. */
  count(key: string, result: TransformResult, nowMs = performance.now()): string | undefined {
    const overran = isOverrun(result);
    let window = this.#windows.get(key);
    if (window && nowMs - window.sinceMs > this.rule.windowMs && (window.hadBreak || isRare(window))) {
      this.#windows.delete(key);
      window = undefined;
    }
    if (!window) {
      if (!overran || this.rule.max === 0) return undefined;
      this.#windows.set(key, (window = { sinceMs: nowMs, calls: 0, overruns: 0, hadBreak: false }));
    }
    window.calls++;
    if (!overran) return undefined;
    window.overruns++;
    if (window.overruns < this.rule.max || isRare(window)) return undefined;
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

const isRare = ({ calls, overruns }: Window): boolean => overruns < SHARE * calls;

/** The settings: overruns within a window, 0: never. A window is at least twice as long as that many overruns take. */
export function overrunRule({ transform }: Pick<Config, 'transform'>) {
  const { deadline_ms: deadlineMs, pause_overruns: max, pause_window_seconds: windowSeconds } = transform;
  return { max, windowMs: Math.max(windowSeconds * 1000, 2 * max * deadlineMs) };
}
