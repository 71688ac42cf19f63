/**
 * Sends entries in batches, several at a time. A batch takes what has piled up while the others were under way and never waits for more, so that an idle queue
 * is served at once and a busy one with full batches.
 */
export class Batches<Entry> {
  readonly #send: (entries: Entry[]) => Promise<void>;
  readonly #size: number;
  readonly #atOnce: number;
  #waiting: Entry[] = [];
  #underWay = 0;
  #scheduled = false;
  #onIdle: (() => void)[] = [];

  /** @param send must not reject */
  constructor(send: (entries: Entry[]) => Promise<void>, { size, atOnce }: { size: number; atOnce: number }) {
    this.#send = send;
    this.#size = size;
    this.#atOnce = atOnce;
  }

  add(entry: Entry): void {
    this.#waiting.push(entry);
    if (this.#scheduled) return;
    this.#scheduled = true;
    // What settles together, in one commit, goes together.
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  /** Resolves when everything added so far was sent. */
  async idle(): Promise<void> {
    if (this.#waiting.length > 0 || this.#underWay > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  #flush(): void {
    while (this.#underWay < this.#atOnce && this.#waiting.length > 0) {
      this.#underWay++;
      void this.#send(this.#waiting.splice(0, this.#size)).finally(() => {
        this.#underWay--;
        this.#flush();
      });
    }
    if (this.#waiting.length > 0 || this.#underWay > 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}
