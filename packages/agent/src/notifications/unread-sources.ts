export interface SourceRef {
  readonly id: string;
  readonly project_id: string;
}

/** A source that this agent should read and cannot. */
export interface UnreadSource extends SourceRef {
  readonly sinceMs: number;
  reason: string;
  /** It has an open notification. */
  notified: boolean;
  /** Its notification was too early after the last one. */
  quiet: boolean;
}

/** Tracks since when and why this agent cannot read its sources. */
export class UnreadSources {
  readonly #unread = new Map<string, UnreadSource>();
  readonly #read = new Set<string>();

  /** Returns true when the source had a notification. */
  reading({ id }: SourceRef): boolean {
    const notified = this.#unread.get(id)?.notified ?? false;
    this.#unread.delete(id);
    this.#read.add(id);
    return notified;
  }

  /** @param reason undefined while connecting: the last reason stays */
  failing({ id, project_id }: SourceRef, reason = this.#unread.get(id)?.reason ?? 'It is still being connected to.'): void {
    this.#read.delete(id);
    const known = this.#unread.get(id);
    if (known) known.reason = reason;
    else this.#unread.set(id, { id, project_id, sinceMs: Date.now(), reason, notified: false, quiet: false });
  }

  /** This agent should no longer read the source. */
  stopped({ id }: SourceRef): void {
    this.#unread.delete(id);
    this.#read.delete(id);
  }

  isRead(id: string): boolean {
    return this.#read.has(id);
  }

  /** Sources that were not read for this long and have no notification. */
  due(seconds: number): UnreadSource[] {
    return [...this.#unread.values()].filter(({ notified, sinceMs }) => !notified && Date.now() - sinceMs >= seconds * 1000);
  }

  /** False when the source was read or stopped since. */
  continues(source: UnreadSource): boolean {
    return this.#unread.get(source.id) === source;
  }
}
