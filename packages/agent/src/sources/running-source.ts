import { clip } from '@gateway/core/json';
import { forwardedHeaders } from '@gateway/core/events';
import type { Log } from '@gateway/core/logging';
import { type ActivatedPlugins, whySourceInactive } from '@gateway/core/plugins';
import { backoffMs } from '@gateway/core/process';
import { PluginError, settles, type Handle, type SourceContext } from '@gateway/plugin';
import type { SourceRecord } from '@gateway/store/config';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentContext } from '../config/agent-context.js';
import type { AgentLease } from '../model/lease.js';
import { openCodec } from '@gateway/ingest/decode/codecs';
import type { SourceCodec } from '@gateway/ingest/decode/source-codec';
import {
  ingestSource,
  type IngestSource,
  type ReadingState,
} from '@gateway/ingest/message/ingest-source';
import type { Pipeline } from '@gateway/ingest/pipeline';
import type { RecordedPositions } from './recorded-positions.js';
import {
  clientIdOf,
  connectionKeyOf,
  connectionOf,
  type SourceWatchOptions,
} from './source-watch.js';
import type { Transformer } from '@gateway/ingest/transform/transformer';

export interface RunningSourceOptions
  extends Pick<AgentContext, 'health' | 'log'>, Omit<SourceWatchOptions, 'advise'> {
  readonly codecs: ActivatedPlugins['codecs'];
  readonly pipeline: Pipeline;
  readonly transformer?: Pick<Transformer, 'abandon' | 'change'>;
  readonly notifier?: {
    source(source: SourceRecord, state: ReadingState, reason?: string): void;
    lost(source: SourceRecord, partition: string, messages: number): void;
  };
  readonly countLost?:
    | ((labels: { project: string; source: string; partition: string }, messages: number) => void)
    | undefined;
  readonly window: number;
  readonly lease: Pick<AgentLease, 'shareOf'>;
  readonly positions?: Pick<RecordedPositions, 'of' | 'write'> | undefined;
}

/**
 * `stop` waits this long for a source's function. After that, undecided messages stay with their
 * broker.
 */
const ABANDON_MS = 5_000;

/** For the positions of a run that has ended, which Postgres may not take. */
const RECORD_MS = 2_000;

/** For the partitions that third-party plugins report. */
const PARTITION_LENGTH_MAX = 100;
const PARTITIONS_MAX = 4_000;

/**
 * A changed share of the readers applies after this time, so that restarting one agent does not
 * affect the others.
 */
const STEADY_MS = 10_000;

export class RunningSource {
  readonly #stop = new AbortController();
  readonly #connectionKey: string;
  /** Aborted to restart the plugin. */
  #run = new AbortController();
  /**
   * The number of readers in this agent, the callback that changes it, and the share that may apply
   * next.
   */
  #workers: number;
  #onWorkers: ((workers: number) => void) | undefined;
  #next: { readonly workers: number; readonly sinceMs: number } | undefined;
  isTried = false;
  #isReading = false;
  #advice: string | null = null;
  /** The sentence of the plugin's last report that it reads. */
  #told: string | undefined;
  /** By partition, since this agent started the source. */
  readonly #lost = new Map<string, number>();
  readonly #log: Log;
  /** Undefined if messages are decoded by their content type. */
  readonly #codec: SourceCodec | undefined;
  /** Why messages wait for the codec, for operators. */
  #waits: string | null = null;
  #ingestSource: IngestSource;
  readonly #ended: Promise<void>;

  constructor(
    private record: SourceRecord,
    readonly component: string,
    private readonly options: RunningSourceOptions,
  ) {
    this.#log = options.log.child({
      source_id: record.id,
      source: record.name,
      project_id: record.project_id,
    });
    this.#codec = this.#openCodec();
    this.#ingestSource = ingestSource(record, this.#codec);
    this.#connectionKey = connectionKeyOf(record);
    this.#workers = this.#share();
    this.#ended = this.#supervise();
  }

  /**
   * Applies a changed record without a restart. Returns false if its connection has changed, which
   * requires a restart.
   */
  accepts(record: SourceRecord): boolean {
    if (connectionKeyOf(record) !== this.#connectionKey) return false;
    const before = this.#ingestSource;
    const isChanged =
      record.body_function !== this.record.body_function ||
      record.keep_messages !== this.record.keep_messages;
    if (isChanged) this.#ingestSource = ingestSource(record, this.#codec);
    this.record = record;
    if (this.#ingestSource !== before) this.options.transformer?.change(before, this.#ingestSource);
    return true;
  }

  /**
   * Undecided messages stay with the broker, to be read again when the source next runs. Call
   * `stop` afterwards.
   */
  abandon(): void {
    this.#stop.abort();
    this.options.transformer?.abandon(this.#ingestSource);
  }

  /**
   * Applies a share that has lasted long enough. Restarts a plugin that cannot change its number of
   * readers.
   */
  share(nowMs: number): void {
    const workers = this.#share();
    if (workers === this.#workers) this.#next = undefined;
    else if (this.#next?.workers !== workers) this.#next = { workers, sinceMs: nowMs };
    else if (nowMs - this.#next.sinceMs >= STEADY_MS) {
      this.#log.info(
        { workers, before: this.#workers },
        'The agents sharing this source changed; adjusted the number of readers here.',
      );
      this.#workers = workers;
      if (this.#onWorkers) this.#onWorkers(workers);
      else this.#run.abort();
    }
  }

  #share(): number {
    return this.options.lease.shareOf(this.record.pub_sub.workers ?? 1);
  }

  /** For the operator, in health, while the source is being read. */
  advise(advice: string | null): void {
    if (advice !== null && advice !== this.#advice)
      this.#log.warn({ advice }, 'The source is being read, with a warning.');
    this.#advice = advice;
    if (this.#isReading) this.#reportReading();
  }

  #openCodec(): SourceCodec | undefined {
    const { codecs, pluginTable = [], openSecret, log } = this.options;
    const { id, pub_sub: pubSub } = this.record;
    if (!pubSub.codec) return undefined;
    const options = { plugins: { codecs, table: pluginTable }, open: openSecret, log };
    return openCodec({ sourceId: id, codec: pubSub.codec }, options, (error) => this.#wait(error));
  }

  /** Messages wait for the codec, or with null go on. */
  #wait(error: Error | null): void {
    const { reason, told } = error
      ? reasonOf(error, 'The codec cannot decode messages now; the agents log the reason.')
      : { reason: null, told: undefined };
    if (reason !== null && reason !== this.#waits)
      this.#log.warn({ reason }, 'Messages wait until their codec can decode them; retrying.');
    this.#waits = reason;
    if (!this.#isReading) return;
    this.#tell(reason === null ? 'reading' : 'failing', told);
    if (this.#reportReading() && reason === null)
      this.#log.info({}, 'The codec decodes messages again.');
  }

  #reportReading(): boolean {
    this.#isReading = true;
    if (this.#waits !== null)
      return this.options.health.report(this.component, 'down', `${this.#waits} Trying again.`);
    const told = [
      ...(this.#lost.size > 0 ? [lostSentence(this.#lost)] : []),
      ...(this.#told === undefined ? [] : [this.#told]),
      ...(this.#advice === null ? [] : [this.#advice]),
    ];
    return this.options.health.report(
      this.component,
      told.length === 0 ? 'ok' : 'degraded',
      told.join(' ') || undefined,
    );
  }

  #lose(partition: string, messages: number): void {
    if (
      !Number.isSafeInteger(messages) ||
      messages < 0 ||
      (this.#lost.size >= PARTITIONS_MAX && !this.#lost.has(partition))
    )
      return;
    const { id: source, project_id: project } = this.record;
    this.options.countLost?.({ project, source, partition }, messages);
    if (messages === 0) return;
    this.#lost.set(partition, (this.#lost.get(partition) ?? 0) + messages);
    this.options.notifier?.lost(this.record, partition, messages);
    this.#log.error(
      { partition, messages },
      'The broker deleted messages before they were read; they are lost to the gateway.',
    );
    if (this.#isReading) this.#reportReading();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#codec?.stop();
    const timer = setTimeout(() => this.abandon(), ABANDON_MS);
    await this.#ended;
    clearTimeout(timer);
    this.options.health.forget(this.component);
    this.#tell('stopped');
  }

  /** For the tenant, in notifications and in the management API. */
  #tell(state: ReadingState, reason?: string): void {
    this.options.notifier?.source(this.record, state, reason);
    this.options.lags?.tellState(this.record.id, state, reason);
  }

  async #supervise(): Promise<void> {
    await sleep(this.options.startsInMs, undefined, { signal: this.#stop.signal }).catch(
      () => undefined,
    );
    for (let failures = 0; !this.#stop.signal.aborted;) {
      const startedAtMs = performance.now();
      try {
        this.#run = new AbortController();
        await this.#read();
        if (this.#stop.signal.aborted) return;
        if (this.#run.signal.aborted) continue;
        throw new Error('The source plugin stopped reading without a reason.');
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        // A run that failed may still be reading.
        this.#run.abort();
        // After a run of more than a minute, earlier failures no longer count.
        failures = performance.now() - startedAtMs > 60_000 ? 1 : failures + 1;
        const waitMs = backoffMs(failures, { baseMs: 500, capMs: 30_000 });
        const { reason, told } = reasonOf(
          error as Error,
          'The source cannot be read; the agents log the reason.',
        );
        this.isTried = true;
        this.options.health.report(this.component, 'down', `${reason} Trying again.`);
        this.#tell('failing', told);
        this.#log.warn(
          { reason, wait_ms: waitMs, failures },
          'Could not read the source; retrying.',
        );
        await sleep(waitMs, undefined, { signal: this.#stop.signal }).catch(() => undefined);
      }
    }
  }

  async #read(): Promise<void> {
    const { pub_sub: pubSub } = this.record;
    const active = this.options.plugins.get(pubSub.type);
    const inactive = whySourceInactive(this.options.pluginTable ?? [], pubSub.type);
    if (!active && inactive)
      throw new PluginError(
        `The source plugin "${pubSub.type}" is inactive: ${inactive.reason.replace(/\.$/, '')}.`,
        { fix: inactive.fix },
      );
    if (!active)
      throw new PluginError(
        `There is no active source plugin named "${pubSub.type}"; active are: ${[...this.options.plugins.keys()].join(', ') || 'none'}.`,
        { fix: 'Activate it, or delete the source.' },
      );
    const plugin = await active.load();
    const connection = connectionOf(this.record, active, this.options.openSecret);
    this.options.health.report(this.component, 'degraded', 'connecting');
    this.#tell('failing');
    const run = { ended: false };
    try {
      await plugin.run(
        connection,
        this.#handle(run),
        this.#context(active.settings, run, plugin.watch === undefined),
      );
    } finally {
      run.ended = true;
      this.#isReading = false;
      this.#onWorkers = undefined;
      if (this.options.positions) await settles(this.options.positions.write(), RECORD_MS);
      if (!plugin.watch) this.options.lags?.forgetLag(this.record.id);
    }
  }

  #handle(run: { readonly ended: boolean }): Handle {
    const { pipeline, lags } = this.options;
    const handle = pipeline.handle(() => this.#ingestSource);
    const { forward_headers: names, codec } = this.record.pub_sub;
    return (message) => {
      if (run.ended) return Promise.resolve('later');
      lags?.read(this.record.id);
      return handle(
        names
          ? { ...message, headers: forwardedHeaders(message.headers, names, codec !== undefined) }
          : message,
      );
    };
  }

  /**
   * For one run of the plugin.
   *
   * @param run after its end, the plugin's reports are ignored
   * @param reportsLag whether `run` reports the lag, because the plugin has no `watch`
   */
  #context(
    settings: SourceContext['settings'],
    run: { readonly ended: boolean },
    reportsLag: boolean,
  ): SourceContext {
    const { health, window, lags } = this.options;
    const { id: sourceId, project_id: projectId } = this.record;
    const positions = this.options.positions?.of({ projectId, sourceId });
    const lag: SourceContext['lag'] = (partition, messages, offsets) => {
      if (!run.ended) lags?.tell(this.record.id, partition, messages, offsets);
    };
    this.#workers = this.#share();
    return {
      ...(lags && reportsLag && { lag }),
      ...(positions && {
        readBefore: positions.readBefore,
        record: (name, position) => void (run.ended || positions.record(name, position)),
      }),
      lost: (partition, messages) =>
        void (run.ended || this.#lose(clip(String(partition), PARTITION_LENGTH_MAX, ''), messages)),
      settings,
      sourceId: this.record.id,
      signal: AbortSignal.any([this.#stop.signal, this.#run.signal]),
      window,
      workers: this.#workers,
      onWorkers: (follow) => (this.#onWorkers = follow),
      clientId: clientIdOf(this.record),
      log: this.#log,
      report: (state, reason) => {
        this.#tell(state === 'reading' ? 'reading' : 'failing', reason);
        if (state === 'reading') {
          this.isTried = true;
          if (reason !== undefined && reason !== this.#told)
            this.#log.warn({ advice: reason }, 'The source is being read, with a warning.');
          this.#told = reason;
          if (this.#reportReading()) this.#log.info({}, 'The source is being read.');
          return;
        }
        this.#isReading = false;
        health.report(this.component, state === 'failing' ? 'down' : 'degraded', reason ?? state);
      },
    };
  }
}

/**
 * For operators, and as `told` for the tenant: without the message of an error without a fix, which
 * may quote a server.
 */
function reasonOf(error: Error & { said?: string; fix?: string }, unexplained: string) {
  const { message, said, fix } = error;
  const reason = [message, said && `The answer: ${said.replace(/\.?$/, '.')}`, fix]
    .filter(Boolean)
    .join(' ');
  return { reason, told: fix === undefined ? unexplained : `${message} ${fix}` };
}

function lostSentence(lost: ReadonlyMap<string, number>): string {
  const all = [...lost.values()].reduce((sum, it) => sum + it, 0);
  const [first = []] = lost;
  const where = lost.size === 1 ? `partition ${first[0]}` : `${lost.size} partitions`;
  return `The broker has deleted up to ${all} messages of ${where} before they were read. Keep messages longer than the gateway may be away (retention), send what is missing again, and see gateway_source_lost_messages_total; this line disappears with the next restart.`;
}
