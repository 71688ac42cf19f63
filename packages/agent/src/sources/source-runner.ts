import { TokenBuckets } from '@gateway/core/process';
import type { PausableSource, SourceRecord } from '@gateway/store/config';
import type { Shard } from '@gateway/store/shards';
import type { AgentContext } from '../config/agent-context.js';
import { RunningSource, type RunningSourceOptions } from './running-source.js';
import { SourceWatch } from './source-watch.js';

interface SourceRunnerOptions
  extends Pick<AgentContext, 'configCache'>, Omit<RunningSourceOptions, 'startsInMs'> {
  readonly shard: Pick<Shard, 'name'>;
  /** By plugin name: their sources take requests, and nothing is read. */
  readonly pushSources: Pick<ReadonlyMap<string, unknown>, 'has'>;
}

/** The maximum time for which an unresponsive broker may delay readiness. */
const STARTING_MAX_MS = 10_000;

const STARTS_PER_SECOND = 40;

/**
 * Runs the enabled sources of a shard's outgoing projects. A changed function applies at runtime; a changed
 * connection restarts the source.
 */
export class SourceRunner {
  readonly #running = new Map<string, RunningSource>();
  readonly #closing = new Map<string, RunningSource>();
  readonly #paused = new Map<string, string>();
  readonly #watches = new Map<string, SourceWatch>();
  /**
   * Spreads the starts of a project's broker clients, which block the event loop for milliseconds.
   */
  readonly #starts = new TokenBuckets(STARTS_PER_SECOND, 0);
  readonly #watchStarts = new TokenBuckets(STARTS_PER_SECOND, 0);
  #stopping = false;
  #unfollow: (() => void) | undefined;
  #startedAtMs: number | undefined;
  #isStarted = false;

  constructor(private readonly options: SourceRunnerOptions) {}

  /**
   * True until each initial source is read, has failed once, or takes too long. Until then the
   * agent is not ready, which delays a rolling restart.
   */
  get isStarting(): boolean {
    if (this.#isStarted) return false;
    if (this.#startedAtMs === undefined) return true;
    const isTried = [...this.#running.values()].every((source) => source.isTried);
    this.#isStarted = isTried || performance.now() - this.#startedAtMs > STARTING_MAX_MS;
    return !this.#isStarted;
  }

  start(): void {
    this.#startedAtMs = performance.now();
    this.#unfollow = this.options.configCache.onChange(() => this.#follow());
    this.#follow();
  }

  share(nowMs = performance.now()): void {
    for (const source of this.#running.values()) source.share(nowMs);
  }

  /** Stops all sources. Resolves once they have settled and acknowledged what they can. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#unfollow?.();
    const parts = [this.#running, this.#closing, this.#watches].flatMap((map) => [...map.values()]);
    await Promise.all(parts.map((part) => part.stop()));
  }

  #follow(): void {
    if (this.#stopping) return;
    const wanted = new Map<string, SourceRecord>();
    const paused = new Map<string, PausableSource>();
    const { configCache, shard } = this.options;
    const enabled = configCache.sources.filter((it) => {
      const project = configCache.projects.get(it.project_id);
      return (
        !it.is_disabled &&
        !this.options.pushSources.has(it.pub_sub.type) &&
        project?.type === 'outgoing' &&
        project.shard === shard.name
      );
    });
    for (const record of enabled) {
      if (record.is_paused) paused.set(record.id, record);
      else wanted.set(record.id, record);
    }
    this.#watch(new Map<string, SourceRecord>([...wanted, ...paused]));
    for (const [id, source] of this.#running) {
      const record = wanted.get(id);
      if (record && source.accepts(record)) continue;
      if (paused.has(id)) source.abandon();
      // The old connection closes before a new one opens: both would compete for partitions.
      this.#running.delete(id);
      this.#closing.set(id, source);
      void source.stop().then(() => {
        this.#closing.delete(id);
        this.#follow();
      });
      if (record) wanted.delete(id);
    }
    this.#showPaused(paused);
    for (const [id, record] of wanted) {
      if (!this.#running.has(id) && !this.#closing.has(id))
        this.#running.set(
          id,
          new RunningSource(record, this.#componentOf(record), {
            ...this.options,
            startsInMs: this.#starts.add(record.project_id, 1),
          }),
        );
    }
  }

  #watch(enabled: ReadonlyMap<string, SourceRecord>): void {
    for (const [id, watch] of this.#watches) {
      const record = enabled.get(id);
      if (record && watch.accepts(record)) continue;
      this.#watches.delete(id);
      void watch.stop();
      if (record) this.options.lags?.forgetLag(id);
      else this.options.lags?.forget(id);
    }
    for (const [id, record] of enabled) {
      if (this.#watches.has(id)) continue;
      const advise = (advice: string | null) => this.#running.get(id)?.advise(advice);
      const startsInMs = this.#watchStarts.add(record.project_id, 1);
      this.#watches.set(id, new SourceWatch(record, { ...this.options, advise, startsInMs }));
    }
  }

  #showPaused(paused: ReadonlyMap<string, PausableSource>): void {
    for (const [id, component] of this.#paused) {
      if (paused.has(id)) continue;
      this.#paused.delete(id);
      this.options.health.forget(component);
    }
    for (const [id, record] of paused) {
      if (this.#closing.has(id)) continue;
      const component = this.#paused.get(id) ?? this.#componentOf(record);
      this.#paused.set(id, component);
      this.options.health.report(
        component,
        'degraded',
        `Paused ${untilWhen(record)}: ${record.pause_reason}`,
      );
    }
  }

  /**
   * Returns the name of a source's health component: the source's name, followed by its id if the
   * name is in use.
   */
  #componentOf({ name, id }: SourceRecord): string {
    const component = `source ${name}`;
    const sources = [...this.#running.values(), ...this.#closing.values()].map(
      (source) => source.component,
    );
    return [...sources, ...this.#paused.values()].includes(component)
      ? `${component} (${id})`
      : component;
  }
}

function untilWhen({ resumes_in_ms: ms }: PausableSource): string {
  if (ms === null) return 'until a person resumes it';
  return `until ${new Date(Date.now() + Math.max(0, ms)).toISOString()}, then resumed automatically`;
}
