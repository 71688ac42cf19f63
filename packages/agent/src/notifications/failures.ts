/** With the number of its consecutive failures. */
export interface FailingResource {
  readonly projectId: string;
  readonly id: string;
  readonly sinceMs: number;
  failures: number;
  error: string;
  /** All failures were those of deliveries of operational events. */
  isOperational: boolean;
  /** It has failed for long enough to send a notification. */
  isDue: boolean;
}

/** For one kind of resource. A success costs two lookups in mostly empty maps. */
export class Failures {
  readonly #failing = new Map<string, FailingResource>();
  readonly due = new Map<string, FailingResource>();
  /** Notifications raised by any agent. */
  readonly open = new Set<string>();
  /** Resources that recovered while their notification was open. */
  readonly recovered = new Set<string>();

  get(id: string): FailingResource | undefined {
    return this.#failing.get(id);
  }

  all(): Iterable<FailingResource> {
    return this.#failing.values();
  }

  fail(
    projectId: string,
    id: string,
    error: string,
    { sinceMs = Date.now(), isOperational = false } = {},
  ): FailingResource {
    let failure = this.#failing.get(id);
    if (!failure) {
      failure = { projectId, id, sinceMs, failures: 0, error, isOperational, isDue: false };
      this.#failing.set(id, failure);
    }
    failure.failures++;
    failure.error = error;
    failure.isOperational &&= isOperational;
    return failure;
  }

  needsNotification(failure: FailingResource): void {
    failure.isDue = true;
    this.due.set(failure.id, failure);
  }

  /** Open, or recovered if the resource has recovered. */
  raised(failure: FailingResource): void {
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
