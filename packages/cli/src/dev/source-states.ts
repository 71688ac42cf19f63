import type { State } from './observe.js';

/** How each source stands. */
export class SourceStates {
  readonly #states = new Map<string, { state: State; reason: string | undefined }>();
  readonly #waiting = new Set<() => void>();

  /** Takes a report. True when a person is to be told: it fails for another reason than before, or is well again. */
  report(source: string, state: State, reason?: string): boolean {
    const before = this.#states.get(source);
    // Between two tries it connects; that is no news.
    if (state === 'connecting' && before !== undefined) return false;
    this.#states.set(source, { state, reason });
    for (const wake of this.#waiting) wake();
    if (state === 'failing') return before?.state !== 'failing' || before.reason !== reason;
    return state === 'reading' && before?.state === 'failing';
  }

  /** Waits until the source is read, or fails; undefined when neither happened in time. */
  async settled(source: string, withinMs: number): Promise<{ state: State; reason: string | undefined } | undefined> {
    const over = Date.now() + withinMs;
    for (;;) {
      const known = this.#states.get(source);
      if (known && known.state !== 'connecting') return known;
      const left = over - Date.now();
      if (left <= 0) return undefined;
      await new Promise<void>((resolve) => {
        const wake = () => {
          clearTimeout(timer);
          this.#waiting.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, left);
        this.#waiting.add(wake);
      });
    }
  }

  /** Forgets how a source stood: it is about to be opened anew. */
  forget(source: string): void {
    this.#states.delete(source);
  }
}
