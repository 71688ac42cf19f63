/** Unread messages of one partition of a source, or of a queue. */
export interface SourceLag {
  readonly projectId: string;
  readonly sourceId: string;
  readonly partition: string;
  readonly messages: number;
}

/** The lag of the sources that this agent reads, as reported by their plugins. */
export class SourceLags {
  readonly #lags = new Map<string, Map<string, SourceLag>>();

  /** Notes the lag of a partition; null, or anything that is no count, forgets it. */
  tell({ projectId, id }: { readonly projectId: string; readonly id: string }, partition: string, messages: number | null): void {
    const lags = this.#lags.get(id);
    if (messages === null || !Number.isFinite(messages) || messages < 0) {
      lags?.delete(partition);
      return;
    }
    const lag = { projectId, sourceId: id, partition: String(partition), messages };
    if (lags) lags.set(partition, lag);
    else this.#lags.set(id, new Map([[partition, lag]]));
  }

  forget(sourceId: string): void {
    this.#lags.delete(sourceId);
  }

  all(): SourceLag[] {
    return [...this.#lags.values()].flatMap((lags) => [...lags.values()]);
  }
}
