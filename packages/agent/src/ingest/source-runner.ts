import { openConnection } from '@gateway/core/crypto';
import type { Log } from '@gateway/core/logging';
import type { ActiveSource } from '@gateway/core/plugins';
import { backoffMs } from '@gateway/core/process';
import type { SourceContext } from '@gateway/plugin';
import type { PausableSource, SourceRecord } from '@gateway/store/config';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentContext } from '../config/agent-context.js';
import { ingestSource, type IngestSource, type SourceState } from '../model/ingest.js';
import type { Pipeline } from './pipeline.js';
import type { Transformer } from './transformer.js';

export interface SourceRunnerOptions extends Pick<AgentContext, 'configCache' | 'health' | 'log'> {
  readonly pipeline: Pipeline;
  readonly transformer?: Pick<Transformer, 'abandon' | 'change'>;
  readonly notifier?: { source(source: SourceRecord, state: SourceState, reason?: string): void };
  readonly plugins: ReadonlyMap<string, Omit<ActiveSource, 'manifest'>>;
  readonly openSecret: (sealed: string) => string;
  readonly window: number;
  readonly lags?: SourceLags | undefined;
}

/** The function of a stopped source gets this long for messages that were read; then they stay with their broker. */
const ABANDON_MS = 5_000;

/** After this long a broker that does not answer no longer keeps the agent from being ready. */
const STARTING_MAX_MS = 10_000;

/** Runs the enabled sources of outgoing projects, and retries those that fail. A new function takes effect at once, a new connection by a restart. */
export class SourceRunner {
  readonly #running = new Map<string, RunningSource>();
  readonly #closing = new Map<string, RunningSource>();
  readonly #paused = new Map<string, string>();
  #stopping = false;
  #startedAtMs: number | undefined;
  #isStarted = false;

  constructor(private readonly options: SourceRunnerOptions) {}

  /** True until each source that existed at the start is read, has failed once, or has taken very long. A rolling restart waits for this. */
  get isStarting(): boolean {
    if (this.#isStarted) return false;
    if (this.#startedAtMs === undefined) return true;
    const isTried = [...this.#running.values()].every((source) => source.isTried);
    this.#isStarted = isTried || performance.now() - this.#startedAtMs > STARTING_MAX_MS;
    return !this.#isStarted;
  }

  /** Starts the sources in the config cache and follows its changes. Does not wait until they are read. */
  start(): void {
    this.#startedAtMs = performance.now();
    this.options.configCache.onChange(() => this.#follow());
    this.#follow();
  }

  /** Stops reading, and resolves when every source has settled and acknowledged what it may. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all([...this.#running.values(), ...this.#closing.values()].map((source) => source.stop()));
  }

  #follow(): void {
    if (this.#stopping) return;
    const wanted = new Map<string, SourceRecord>();
    const paused = new Map<string, PausableSource>();
    for (const record of this.options.configCache.sources) {
      if (record.is_disabled || this.options.configCache.projects.get(record.project_id)?.type !== 'outgoing') continue;
      if (record.resumes_in_ms === null) wanted.set(record.id, record);
      else paused.set(record.id, record);
    }
    for (const [id, source] of this.#running) {
      const record = wanted.get(id);
      if (record && source.accepts(record)) continue;
      if (paused.has(id)) source.abandon();
      // A changed source restarts when its old connection is closed, so that the two do not compete for its partitions.
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
        this.#running.set(id, new RunningSource(record, this.#componentOf(record), this.options));
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
      this.options.health.report(component, 'degraded', `Paused, and tried again later by itself: ${record.pause_reason}`);
    }
  }

  /** The health component of a source: its name, with its id if another source has that name. */
  #componentOf({ name, id }: SourceRecord): string {
    const component = `source ${name}`;
    const sources = [...this.#running.values(), ...this.#closing.values()].map((source) => source.component);
    return [...sources, ...this.#paused.values()].includes(component) ? `${component} (${id})` : component;
  }
}

class RunningSource {
  readonly #stop = new AbortController();
  readonly #connectionKey: string;
  isTried = false;
  readonly #log: Log;
  #ingestSource: IngestSource;
  readonly #ended: Promise<void>;

  constructor(
    private record: SourceRecord,
    readonly component: string,
    private readonly options: SourceRunnerOptions,
  ) {
    this.#ingestSource = ingestSource(record);
    this.#connectionKey = JSON.stringify([record.project_id, record.pub_sub]);
    this.#log = options.log.child({ source_id: record.id, source: record.name, project_id: record.project_id });
    this.#ended = this.#supervise();
  }

  /** Takes on a changed record without a restart; false if its connection has changed. */
  accepts(record: SourceRecord): boolean {
    if (JSON.stringify([record.project_id, record.pub_sub]) !== this.#connectionKey) return false;
    const before = this.#ingestSource;
    if (record.body_function !== this.record.body_function) this.#ingestSource = ingestSource(record);
    this.record = record;
    if (this.#ingestSource !== before) this.options.transformer?.change(before, this.#ingestSource);
    return true;
  }

  /** Leaves undecided messages with the broker. Call `stop` next: the plugin hands them over again in its next run. */
  abandon(): void {
    this.#stop.abort();
    this.options.transformer?.abandon(this.#ingestSource);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    const timer = setTimeout(() => this.abandon(), ABANDON_MS);
    await this.#ended;
    clearTimeout(timer);
    this.options.health.forget(this.component);
    this.options.notifier?.source(this.record, 'stopped');
  }

  async #supervise(): Promise<void> {
    for (let failures = 0; !this.#stop.signal.aborted;) {
      const startedAtMs = performance.now();
      try {
        await this.#run();
        if (this.#stop.signal.aborted) return;
        throw new Error('The source plugin stopped reading without a reason.');
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        // A source that ran well for a while counts from zero again.
        failures = performance.now() - startedAtMs > 60_000 ? 1 : failures + 1;
        const waitMs = backoffMs(failures, { baseMs: 500, capMs: 30_000 });
        const fix = (error as { fix?: string }).fix;
        const reason = `${(error as Error).message}${fix ? ` ${fix}` : ''}`;
        this.isTried = true;
        this.options.health.report(this.component, 'down', `${reason} Trying again.`);
        this.options.notifier?.source(this.record, 'failing', reason);
        this.#log.warn({ reason, wait_ms: waitMs, failures }, 'The source cannot be read; trying again.');
        await sleep(waitMs, undefined, { signal: this.#stop.signal }).catch(() => undefined);
      }
    }
  }

  async #run(): Promise<void> {
    const { pub_sub: pubSub } = this.record;
    const active = this.options.plugins.get(pubSub.type);
    if (!active)
      throw new Error(
        `There is no active source plugin named "${pubSub.type}"; active are: ${[...this.options.plugins.keys()].join(', ') || 'none'}.`,
      );
    const plugin = await active.load();
    const stored = (pubSub[pubSub.type] ?? {}) as Readonly<Record<string, unknown>>;
    const connection = openConnection(stored, active.connectionSchema, this.options.openSecret);
    this.options.health.report(this.component, 'degraded', 'connecting');
    this.options.notifier?.source(this.record, 'failing');
    const run = { ended: false };
    try {
      await plugin.run(
        connection,
        this.options.pipeline.handle(() => this.#ingestSource),
        this.#context(active.settings, run),
      );
    } finally {
      run.ended = true;
      this.options.lags?.forget(this.record.id);
    }
  }

  /** @param run ended: reports of the plugin are ignored */
  #context(settings: SourceContext['settings'], run: { readonly ended: boolean }): SourceContext {
    const { health, window, lags } = this.options;
    const source = { id: this.record.id, projectId: this.record.project_id };
    const lag = (partition: string, messages: number | null) => {
      if (!run.ended) lags?.tell(source, partition, messages);
    };
    return {
      ...(lags && { lag }),
      settings,
      sourceId: this.record.id,
      signal: this.#stop.signal,
      window,
      workers: Math.max(1, this.record.pub_sub.workers ?? 1),
      clientId: `gateway-${hostname()}-${process.pid}-${this.record.id.slice(-6)}`,
      log: this.#log,
      report: (state, reason) => {
        this.options.notifier?.source(this.record, state === 'reading' ? 'reading' : 'failing', reason);
        if (state === 'reading') {
          this.isTried = true;
          if (health.report(this.component, 'ok')) this.#log.info({}, 'The source is being read.');
        } else health.report(this.component, state === 'failing' ? 'down' : 'degraded', reason ?? state);
      },
    };
  }
}

/** The lag of the sources that this agent reads, as reported by their plugins: unread messages by partition, or of a queue. */
export class SourceLags {
  readonly #sources = new Map<string, { readonly projectId: string; readonly messages: Map<string, number> }>();

  /** Notes the lag of a partition; null, or anything that is no count, forgets it. */
  tell({ projectId, id }: { readonly projectId: string; readonly id: string }, partition: string, messages: number | null): void {
    const source = this.#sources.get(id) ?? { projectId, messages: new Map<string, number>() };
    this.#sources.set(id, source);
    if (messages === null || !Number.isFinite(messages) || messages < 0) source.messages.delete(partition);
    else source.messages.set(partition, messages);
  }

  forget(sourceId: string): void {
    this.#sources.delete(sourceId);
  }

  all(): { projectId: string; sourceId: string; partition: string; messages: number }[] {
    return [...this.#sources].flatMap(([sourceId, { projectId, messages: lags }]) =>
      [...lags].map(([partition, messages]) => ({ projectId, sourceId, partition: String(partition), messages })),
    );
  }
}
