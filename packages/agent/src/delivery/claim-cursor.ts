/** What was walked past is walked again after this: a transaction that began long ago may have made something due there. */
const WALK_MS = 5_000;

/** Where a project's due deliveries begin that an agent may claim. */
interface Walk {
  /** Due before this, by the clock of Postgres, is nothing but what is of these endpoints. */
  readonly from: string;
  readonly excepted: readonly string[];
  readonly untilMs: number;
}

/**
 * Remembers how far claims have walked past due deliveries that this agent may not send now, so that each claim does not walk past all of them again: there may be a
 * million, all older than the deliveries of their neighbours.
 */
export class ClaimCursors {
  readonly #walks = new Map<string, Walk>();

  /** Where a claim may begin that leaves out these endpoints; undefined: at the oldest. */
  from(projectId: string, excepted: readonly string[], nowMs: number): string | undefined {
    const walk = this.#walks.get(projectId);
    if (!walk) return undefined;
    const now = new Set(excepted);
    if (walk.untilMs > nowMs && walk.excepted.every((id) => now.has(id))) return walk.from;
    this.#walks.delete(projectId);
    return undefined;
  }

  /** Takes note of how far a claim came that left out these endpoints. */
  came(projectId: string, to: string, excepted: readonly string[], nowMs: number): void {
    if (excepted.length === 0) return;
    this.#walks.set(projectId, { from: to, excepted, untilMs: this.#walks.get(projectId)?.untilMs ?? nowMs + WALK_MS });
  }
}
