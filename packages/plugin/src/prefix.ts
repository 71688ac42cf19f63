/**
 * The settled prefix of one partition: positions are opened in order, settled in any order, and `through` is the last position
 * up to which everything is settled. Only that position may be acknowledged to a broker that acknowledges by offset.
 */
export class SettledPrefix<Position> {
  /** Opened and not yet part of the prefix, oldest first. */
  readonly #open: { position: Position; settled: boolean }[] = [];
  #head = 0;
  #through: Position | undefined;

  /** Opens the next position; call the returned function when it is settled. */
  open(position: Position): () => void {
    const entry = { position, settled: false };
    this.#open.push(entry);
    return () => {
      entry.settled = true;
      this.#advance();
    };
  }

  /** Positions that are opened and not settled, or settled behind one that is not. */
  get size(): number {
    return this.#open.length - this.#head;
  }

  /** The last position of the settled prefix, or undefined when nothing was settled yet. */
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
