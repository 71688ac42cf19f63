/**
 * The settled prefix of a partition: positions are opened in order and settled in any order; `through` is the last position
 * up to which everything has settled. A broker that acknowledges by offset may be told only that position.
 */
export class SettledPrefix<Position> {
  /** Opened and not yet part of the prefix, oldest first. */
  readonly #open: { position: Position; settled: boolean }[] = [];
  #head = 0;
  #through: Position | undefined;

  /** Opens the next position; call the returned function when it settles. */
  open(position: Position): () => void {
    const entry = { position, settled: false };
    this.#open.push(entry);
    return () => {
      entry.settled = true;
      this.#advance();
    };
  }

  /** Open positions: unsettled, or settled behind an unsettled one. */
  get size(): number {
    return this.#open.length - this.#head;
  }

  /** The last position of the settled prefix; undefined while nothing has settled. */
  get through(): Position | undefined {
    return this.#through;
  }

  #advance(): void {
    while (this.#open[this.#head]?.settled) {
      this.#through = this.#open[this.#head]?.position;
      this.#head++;
    }
    // Dropping the settled head in blocks keeps this linear.
    if (this.#head > 1024 || this.#head === this.#open.length) {
      this.#open.splice(0, this.#head);
      this.#head = 0;
    }
  }
}
