/** What a source is called. */
export interface NamedSource {
  readonly id: string;
  readonly project_id: string;
}

/** A source that this agent does not get to read. */
export interface Unread extends NamedSource {
  readonly sinceMs: number;
  reason: string;
  /** It is known to be failing. */
  told: boolean;
  /** It was too early to tell: there is time until the next look. */
  quiet: boolean;
}

/** Since when each source is not read by this agent, and why. */
export class UnreadSources {
  readonly #unread = new Map<string, Unread>();
  readonly #read = new Set<string>();

  /** A source is being read. True when it was told of as failing before. */
  reading({ id }: NamedSource): boolean {
    const told = this.#unread.get(id)?.told ?? false;
    this.#unread.delete(id);
    this.#read.add(id);
    return told;
  }

  /** A source cannot be read, or is being connected to; the reason of the last failure stays while it is. */
  failing({ id, project_id }: NamedSource, reason: string | undefined, nowMs = Date.now()): void {
    this.#read.delete(id);
    const known = this.#unread.get(id);
    if (!known)
      this.#unread.set(id, {
        id,
        project_id,
        sinceMs: nowMs,
        reason: reason ?? 'It is still being connected to.',
        told: false,
        quiet: false,
      });
    else if (reason !== undefined) known.reason = reason;
  }

  /** A source is not to be read by this agent any more. */
  stopped({ id }: NamedSource): void {
    this.#unread.delete(id);
    this.#read.delete(id);
  }

  isRead(id: string): boolean {
    return this.#read.has(id);
  }

  /** Sources that have not been read for so long and were not told of. */
  due(seconds: number, nowMs = Date.now()): Unread[] {
    return [...this.#unread.values()].filter(({ told, sinceMs }) => !told && nowMs - sinceMs >= seconds * 1000);
  }

  /** False when the source has been read, or stopped, since. */
  goesOn(source: Unread): boolean {
    return this.#unread.get(source.id) === source;
  }
}
