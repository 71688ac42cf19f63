import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { openConnection, type Open } from '@gateway/core/crypto';
import type { Log } from '@gateway/core/logging';
import type { ActiveSource } from '@gateway/core/plugins';
import { backoffMs } from '@gateway/core/process';
import type { PartitionOffsets } from '@gateway/plugin';
import type { SourceRecord } from '@gateway/store/config';
import type { PartitionLag, SourceState as KeptState } from '@gateway/store/kv';
import type { SourceState } from '@gateway/ingest/message/ingest-source';

export interface SourceWatchOptions {
  readonly plugins: ReadonlyMap<string, Omit<ActiveSource, 'manifest'>>;
  readonly openSecret: Open;
  readonly log: Log;
  readonly lags?: SourceLags | undefined;
  /** Shows what an operator should change; null when there is nothing. */
  readonly advise: (advice: string | null) => void;
  readonly startsInMs: number;
}

/** Calls the `watch` of a source's plugin while the source is enabled, and again when it fails. What fails is told by `run`, which has the same errors. */
export class SourceWatch {
  readonly #stop = new AbortController();
  readonly #connectionKey: string;
  readonly #ended: Promise<void>;

  constructor(
    private readonly record: SourceRecord,
    private readonly options: SourceWatchOptions,
  ) {
    this.#connectionKey = connectionKeyOf(record);
    options.lags?.begin({ projectId: record.project_id, id: record.id });
    this.#ended = this.#supervise();
  }

  /** False if the connection has changed. */
  accepts(record: SourceRecord): boolean {
    return connectionKeyOf(record) === this.#connectionKey;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  async #supervise(): Promise<void> {
    const { log, lags, advise } = this.options;
    const { signal } = this.#stop;
    await sleep(this.options.startsInMs, undefined, { signal }).catch(() => undefined);
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        if (!(await this.#watch())) return;
      } catch (error) {
        log.debug({ error, source_id: this.record.id }, 'A source cannot be watched; trying again.');
      }
      if (signal.aborted) return;
      lags?.forgetLag(this.record.id);
      advise(null);
      await sleep(backoffMs(failures, { baseMs: 1_000, capMs: 30_000 }), undefined, { signal }).catch(() => undefined);
    }
  }

  /** Resolves with false when the plugin watches nothing. */
  async #watch(): Promise<boolean> {
    const { plugins, openSecret, log, lags, advise } = this.options;
    const active = plugins.get(this.record.pub_sub.type);
    const plugin = await active?.load();
    if (!active || !plugin?.watch) return false;
    const { signal } = this.#stop;
    await plugin.watch(connectionOf(this.record, active, openSecret), {
      settings: active.settings,
      sourceId: this.record.id,
      workers: this.record.pub_sub.workers ?? 1,
      signal,
      clientId: clientIdOf(this.record),
      log: log.child({ source_id: this.record.id }),
      lag: (partition, messages, offsets) => void (signal.aborted || lags?.tell(this.record.id, partition, messages, offsets)),
      advise: (advice) => void (signal.aborted || advise(advice)),
    });
    return true;
  }
}

/** Changes when a source has to be read anew. */
export function connectionKeyOf(record: SourceRecord): string {
  return JSON.stringify([record.project_id, record.pub_sub]);
}

/** The connection of a source with its secrets open. */
export function connectionOf({ id, pub_sub: pubSub }: SourceRecord, active: Pick<ActiveSource, 'connectionSchema'>, open: Open) {
  return openConnection((pubSub[pubSub.type] ?? {}) as Readonly<Record<string, unknown>>, active.connectionSchema, id, open);
}

/** A name at the broker, unique per process and source. */
export function clientIdOf({ id }: SourceRecord): string {
  return `gateway-${hostname()}-${process.pid}-${id.slice(-6)}`;
}

/** Of a plugin that is not ours. */
const OFFSET_LENGTH_MAX = 100;
const REASON_LENGTH_MAX = 2_000;

interface Known {
  readonly projectId: string;
  readonly partitions: Map<string, PartitionLag>;
  readAtMs: number;
  state: Omit<KeptState, 'messages'> | undefined;
  /** Its state has changed since it was last published, or its lag has become known. */
  isNews: boolean;
}

/** What metrics and the management API show of the sources of this agent: unacknowledged messages by partition, or of a queue, and the age of the last message that was read. */
export class SourceLags {
  readonly #sources = new Map<string, Known>();

  /** A source is enabled: its age counts from now, until a message is read. */
  begin({ projectId, id }: { readonly projectId: string; readonly id: string }): void {
    if (!this.#sources.has(id))
      this.#sources.set(id, { projectId, partitions: new Map(), readAtMs: performance.now(), state: undefined, isNews: false });
  }

  /** A message was read. */
  read(sourceId: string): void {
    const known = this.#sources.get(sourceId);
    if (known) known.readAtMs = performance.now();
  }

  /** Notes the lag of a partition; null, or anything that is no count, forgets it. */
  tell(sourceId: string, partition: string, messages: number | null, offsets?: PartitionOffsets): void {
    const known = this.#sources.get(sourceId);
    const lags = known?.partitions;
    const placeOf = (place: string | undefined) => (place === undefined ? null : String(place).slice(0, OFFSET_LENGTH_MAX));
    if (messages === null || !Number.isFinite(messages) || messages < 0) lags?.delete(partition);
    else {
      if (known?.partitions.size === 0) known.isNews = true;
      lags?.set(partition, { partition: String(partition), messages, position: placeOf(offsets?.position), end: placeOf(offsets?.end) });
    }
  }

  /** Notes how a source is read. `failing` without a reason is a connection that is being made: what was known before stays. */
  tellState(sourceId: string, state: SourceState, reason?: string): void {
    const known = this.#sources.get(sourceId);
    if (!known || (state === 'failing' && reason === undefined && known.state)) return;
    const before = known.state;
    if (state === 'stopped') known.state = undefined;
    else if (state === 'reading') known.state = { state, reason: null };
    else known.state = reason === undefined ? { state: 'connecting', reason: null } : { state, reason: reason.slice(0, REASON_LENGTH_MAX) };
    known.isNews ||= known.state?.state !== before?.state || known.state?.reason !== before?.reason;
  }

  /** The sources whose state is known, with their lag; or those alone of which there is news since the last call. */
  states({ isNewsOnly = false } = {}): { projectId: string; sourceId: string; state: KeptState; partitions: PartitionLag[] }[] {
    return [...this.#sources].flatMap(([sourceId, known]) => {
      const { projectId, state, isNews, partitions } = known;
      if (!state || (isNewsOnly && !isNews)) return [];
      known.isNews = false;
      const lags = [...partitions.values()];
      const messages = lags.length === 0 ? null : lags.reduce((sum, it) => sum + it.messages, 0);
      return [{ projectId, sourceId, state: { ...state, messages }, partitions: lags }];
    });
  }

  /** The lag of a source is unknown now. */
  forgetLag(sourceId: string): void {
    this.#sources.get(sourceId)?.partitions.clear();
  }

  /** A source is no longer enabled. */
  forget(sourceId: string): void {
    this.#sources.delete(sourceId);
  }

  lags(): { projectId: string; sourceId: string; partition: string; messages: number }[] {
    return [...this.#sources].flatMap(([sourceId, { projectId, partitions }]) =>
      [...partitions.values()].map(({ partition, messages }) => ({ projectId, sourceId, partition, messages })),
    );
  }

  /** The sources whose lag is known. */
  known(): { sourceId: string; partitions: PartitionLag[] }[] {
    const all = [...this.#sources].map(([sourceId, { partitions }]) => ({ sourceId, partitions: [...partitions.values()] }));
    return all.filter(({ partitions }) => partitions.length > 0);
  }

  ages(nowMs = performance.now()): { projectId: string; sourceId: string; seconds: number }[] {
    return [...this.#sources].map(([sourceId, { projectId, readAtMs }]) => ({ projectId, sourceId, seconds: (nowMs - readAtMs) / 1000 }));
  }
}
