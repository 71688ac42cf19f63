import { clip } from '@gateway/core/json';
import type { PartitionOffsets } from '@gateway/plugin';
import type { PartitionLag, SourceState } from '@gateway/store/kv';
import type { ReadingState } from '@gateway/ingest/message/ingest-source';

/** For reports of third-party plugins. */
const PARTITIONS_MAX = 10_000;
const OFFSET_LENGTH_MAX = 100;
const REASON_LENGTH_MAX = 2_000;

interface KnownLag {
  readonly projectId: string;
  readonly partitions: Map<string, PartitionLag>;
  readAtMs: number;
  state: Omit<SourceState, 'messages'> | undefined;
  /** The state has changed, or the lag has become known, since the last publication. */
  isNews: boolean;
}

/**
 * The lag is the number of unacknowledged messages per partition or queue; the age is the time
 * since the last message.
 */
export class SourceLags {
  readonly #sources = new Map<string, KnownLag>();

  /** Starts tracking an enabled source, with an age of zero, unless it is already tracked. */
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

  /** Null or an invalid number removes the partition. */
  tell(
    sourceId: string,
    partition: string,
    messages: number | null,
    offsets?: PartitionOffsets,
  ): void {
    const known = this.#sources.get(sourceId);
    const lags = known?.partitions;
    const placeOf = (place: string | undefined) =>
      place === undefined ? null : clip(String(place), OFFSET_LENGTH_MAX, '');
    if (messages === null || !Number.isFinite(messages) || messages < 0) lags?.delete(partition);
    else if (!lags || lags.has(partition) || lags.size < PARTITIONS_MAX) {
      if (known?.partitions.size === 0) known.isNews = true;
      lags?.set(partition, {
        partition: String(partition),
        messages,
        position: placeOf(offsets?.position),
        end: placeOf(offsets?.end),
      });
    }
  }

  /** `failing` without a reason means connecting, which does not replace a known state. */
  tellState(sourceId: string, state: ReadingState, reason?: string): void {
    const known = this.#sources.get(sourceId);
    if (!known || (state === 'failing' && reason === undefined && known.state)) return;
    const before = known.state;
    const next = state === 'failing' && reason === undefined ? 'connecting' : state;
    known.state =
      next === 'stopped'
        ? undefined
        : {
            state: next,
            reason: reason === undefined ? null : clip(reason, REASON_LENGTH_MAX),
            sinceMs: before?.state === next ? before.sinceMs : Date.now(),
          };
    known.isNews ||= known.state?.state !== before?.state || known.state?.reason !== before?.reason;
  }

  /**
   * Only sources with a known state or, if `isNewsOnly`, only those changed since the last call.
   */
  states({ isNewsOnly = false } = {}): {
    projectId: string;
    sourceId: string;
    state: SourceState;
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
