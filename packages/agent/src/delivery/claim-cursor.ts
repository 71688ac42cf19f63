/** Skipped rows are scanned again after this interval: a transaction that began long ago may have made some of them due. */
const CURSOR_MS = 5_000;

/** Where a project's due deliveries begin that an agent may claim. */
interface Cursor {
  /** Everything due before this, by the clock of Postgres, belongs to the excepted endpoints. */
  readonly from: string;
  readonly excepted: readonly string[];
  readonly untilMs: number;
}

/** Remembers how many due deliveries claims have skipped: there may be a million that may not be sent now, all older than those of other endpoints. */
export class ClaimCursors {
  readonly #cursors = new Map<string, Cursor>();

  /** Where a claim that leaves out these endpoints may begin; undefined: at the oldest delivery. */
  from(projectId: string, excepted: readonly string[], nowMs: number): string | undefined {
    const cursor = this.#cursors.get(projectId);
    if (!cursor) return undefined;
    const now = new Set(excepted);
    if (cursor.untilMs > nowMs && cursor.excepted.every((id) => now.has(id))) return cursor.from;
    this.#cursors.delete(projectId);
    return undefined;
  }

  /** Notes how far a claim came that left out these endpoints. */
  advance(projectId: string, to: string, excepted: readonly string[], nowMs: number): void {
    if (excepted.length === 0) return;
    this.#cursors.set(projectId, { from: to, excepted, untilMs: this.#cursors.get(projectId)?.untilMs ?? nowMs + CURSOR_MS });
  }
}
