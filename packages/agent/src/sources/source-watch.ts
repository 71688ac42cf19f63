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
  /** Shows advice for the operator; null clears it. */
  readonly advise: (advice: string | null) => void;
  readonly startsInMs: number;
}

/** Calls `watch` of an enabled source's plugin, repeatedly on failure; `run` reports errors. */
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
        log.debug(
          { error, source_id: this.record.id },
          'A source cannot be watched; trying again.',
        );
      }
      if (signal.aborted) return;
      lags?.forgetLag(this.record.id);
      advise(null);
      await sleep(backoffMs(failures, { baseMs: 1_000, capMs: 30_000 }), undefined, {
        signal,
      }).catch(() => undefined);
    }
  }

  /** Resolves with false when the plugin has no `watch`. */
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
      lag: (partition, messages, offsets) =>
        void (signal.aborted || lags?.tell(this.record.id, partition, messages, offsets)),
      advise: (advice) => void (signal.aborted || advise(advice)),
    });
    return true;
  }
}

/** Changes when a source needs to be read anew. */
export function connectionKeyOf(record: SourceRecord): string {
  return JSON.stringify([record.project_id, record.pub_sub]);
}

/** Returns the connection of a source with its secrets opened. */
export function connectionOf(
  { id, pub_sub: pubSub }: SourceRecord,
  active: Pick<ActiveSource, 'connectionSchema'>,
  open: Open,
) {
  return openConnection(
    (pubSub[pubSub.type] ?? {}) as Readonly<Record<string, unknown>>,
    active.connectionSchema,
    id,
    open,
  );
}

/** Returns a name for the broker, unique per process and source. */
export function clientIdOf({ id }: SourceRecord): string {
  return `gateway-${hostname()}-${process.pid}-${id.slice(-6)}`;
}

/** Limits for plugins of third parties. */
const OFFSET_LENGTH_MAX = 100;
const REASON_LENGTH_MAX = 2_000;

interface Known {
  readonly projectId: string;
  readonly partitions: Map<string, PartitionLag>;
  readAtMs: number;
  state: Omit<KeptState, 'messages'> | undefined;
  /** Whether its state has changed since it was published, or its lag has become known. */
  isNews: boolean;
}

/**
 * State, lag and age of sources: unacknowledged messages by partition, or of a queue, and the time
 * since the last message.
 */
export class SourceLags {
  readonly #sources = new Map<string, Known>();

  /** The age of an enabled source counts from now until a message is read. */
  begin({ projectId, id }: { readonly projectId: string; readonly id: string }): void {
    if (!this.#sources.has(id))
      this.#sources.set(id, {
        projectId,
        partitions: new Map(),
        readAtMs: performance.now(),
        state: undefined,
        isNews: false,
      });
  }

  read(sourceId: string): void {
    const known = this.#sources.get(sourceId);
    if (known) known.readAtMs = performance.now();
  }

  /** Sets the lag of a partition; null or an invalid number clears it. */
  tell(
    sourceId: string,
    partition: string,
    messages: number | null,
    offsets?: PartitionOffsets,
  ): void {
    const known = this.#sources.get(sourceId);
    const lags = known?.partitions;
    const placeOf = (place: string | undefined) =>
      place === undefined ? null : String(place).slice(0, OFFSET_LENGTH_MAX);
    if (messages === null || !Number.isFinite(messages) || messages < 0) lags?.delete(partition);
    else {
      if (known?.partitions.size === 0) known.isNews = true;
      lags?.set(partition, {
        partition: String(partition),
        messages,
        position: placeOf(offsets?.position),
        end: placeOf(offsets?.end),
      });
    }
  }

  /** `failing` without a reason means connecting, which keeps a known state. */
  tellState(sourceId: string, state: SourceState, reason?: string): void {
    const known = this.#sources.get(sourceId);
    if (!known || (state === 'failing' && reason === undefined && known.state)) return;
    const before = known.state;
    if (state === 'stopped') known.state = undefined;
    else if (state === 'reading') known.state = { state, reason: null };
    else
      known.state =
        reason === undefined
          ? { state: 'connecting', reason: null }
          : { state, reason: reason.slice(0, REASON_LENGTH_MAX) };
    known.isNews ||= known.state?.state !== before?.state || known.state?.reason !== before?.reason;
  }

  /** Returns sources with a known state; `isNewsOnly`: only changes since the last call. */
  states({ isNewsOnly = false } = {}): {
    projectId: string;
    sourceId: string;
    state: KeptState;
    partitions: PartitionLag[];
  }[] {
    return [...this.#sources].flatMap(([sourceId, known]) => {
      const { projectId, state, isNews, partitions } = known;
      if (!state || (isNewsOnly && !isNews)) return [];
      known.isNews = false;
      const lags = [...partitions.values()];
      const messages = lags.length === 0 ? null : lags.reduce((sum, it) => sum + it.messages, 0);
      return [{ projectId, sourceId, state: { ...state, messages }, partitions: lags }];
    });
  }

  forgetLag(sourceId: string): void {
    this.#sources.get(sourceId)?.partitions.clear();
  }

  forget(sourceId: string): void {
    this.#sources.delete(sourceId);
  }

  lags(): { projectId: string; sourceId: string; partition: string; messages: number }[] {
    return [...this.#sources].flatMap(([sourceId, { projectId, partitions }]) =>
      [...partitions.values()].map(({ partition, messages }) => ({
        projectId,
        sourceId,
        partition,
        messages,
      })),
    );
  }

  known(): { sourceId: string; partitions: PartitionLag[] }[] {
    const all = [...this.#sources].map(([sourceId, { partitions }]) => ({
      sourceId,
      partitions: [...partitions.values()],
    }));
    return all.filter(({ partitions }) => partitions.length > 0);
  }

  ages(nowMs = performance.now()): { projectId: string; sourceId: string; seconds: number }[] {
    return [...this.#sources].map(([sourceId, { projectId, readAtMs }]) => ({
      projectId,
      sourceId,
      seconds: (nowMs - readAtMs) / 1000,
    }));
  }
}
