export interface Failure {
  readonly projectId: string;
  readonly id: string;
  readonly sinceMs: number;
  /** Consecutive failed attempts of an endpoint. */
  failures: number;
  error: string;
  /** It has failed for long enough for a notification. */
  isDue: boolean;
}

/** Tracks what fails of one kind in this agent. Only what fails takes memory: a success costs two look-ups in mostly empty maps. */
export class Failures {
  readonly #failing = new Map<string, Failure>();
  readonly due = new Map<string, Failure>();
  /** Has an open notification, of this agent or another. */
  readonly open = new Set<string>();
  /** Had an open notification, and has recovered. */
  readonly recovered = new Set<string>();

  get(id: string): Failure | undefined {
    return this.#failing.get(id);
  }

  all(): Iterable<Failure> {
    return this.#failing.values();
  }

  fail(projectId: string, id: string, error: string, sinceMs = Date.now()): Failure {
    let failure = this.#failing.get(id);
    if (!failure) this.#failing.set(id, (failure = { projectId, id, sinceMs, failures: 0, error, isDue: false }));
    failure.failures++;
    failure.error = error;
    return failure;
  }

  needsNotification(failure: Failure): void {
    failure.isDue = true;
    this.due.set(failure.id, failure);
  }

  /** Its notification is open. It may have recovered since it was due. */
  raised(failure: Failure): void {
    if (this.due.get(failure.id) === failure) this.due.delete(failure.id);
    (this.#failing.get(failure.id) === failure ? this.open : this.recovered).add(failure.id);
  }

  recover(id: string): void {
    this.forget(id);
    if (this.open.size > 0 && this.open.delete(id)) this.recovered.add(id);
  }

  forget(id: string): void {
    if (this.#failing.delete(id)) this.due.delete(id);
  }
}
