interface Known {
  readonly projectId: string;
  readonly messages: Map<string, number>;
  readAtMs: number;
}

/** What metrics show of the sources of this agent: unacknowledged messages by partition, or of a queue, and the age of the last message that was read. */
export class SourceLags {
  readonly #sources = new Map<string, Known>();

  /** A source is enabled: its age counts from now, until a message is read. */
  begin({ projectId, id }: { readonly projectId: string; readonly id: string }): void {
    if (!this.#sources.has(id)) this.#sources.set(id, { projectId, messages: new Map(), readAtMs: performance.now() });
  }

  /** A message was read. */
  read(sourceId: string): void {
    const known = this.#sources.get(sourceId);
    if (known) known.readAtMs = performance.now();
  }

  /** Notes the lag of a partition; null, or anything that is no count, forgets it. */
  tell(sourceId: string, partition: string, messages: number | null): void {
    const lags = this.#sources.get(sourceId)?.messages;
    if (messages === null || !Number.isFinite(messages) || messages < 0) lags?.delete(partition);
    else lags?.set(partition, messages);
  }

  /** The lag of a source is unknown now. */
  forgetLag(sourceId: string): void {
    this.#sources.get(sourceId)?.messages.clear();
  }

  /** A source is no longer enabled. */
  forget(sourceId: string): void {
    this.#sources.delete(sourceId);
  }

  lags(): { projectId: string; sourceId: string; partition: string; messages: number }[] {
    return [...this.#sources].flatMap(([sourceId, { projectId, messages: lags }]) =>
      [...lags].map(([partition, messages]) => ({ projectId, sourceId, partition: String(partition), messages })),
    );
  }

  ages(nowMs = performance.now()): { projectId: string; sourceId: string; seconds: number }[] {
    return [...this.#sources].map(([sourceId, { projectId, readAtMs }]) => ({ projectId, sourceId, seconds: (nowMs - readAtMs) / 1000 }));
  }
}
