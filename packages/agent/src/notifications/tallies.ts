import type { NewNotification, NotificationFacts } from '@gateway/store/config';

/**
 * The maximum number of subjects that await a notification. What happens to further ones appears
 * only in the log and the metrics.
 */
const SUBJECTS_MAX = 4_000;

interface Tally {
  readonly projectId: string | null;
  readonly facts: NotificationFacts;
  count: number;
}

/** Counts what happened to each subject since its last notification. */
export class Tallies {
  readonly #tallies = new Map<string, Tally>();

  constructor(
    private readonly kind: NewNotification['kind'],
    private readonly unit: 'messages' | 'deliveries',
  ) {}

  /** Counts what happened. `facts` are of the first time. Returns whether the subject is new. */
  add({ projectId, subject, facts }: Omit<NewNotification, 'kind'>, count: number): boolean {
    const known = this.#tallies.get(subject);
    if (known) known.count += count;
    else if (this.#tallies.size < SUBJECTS_MAX)
      this.#tallies.set(subject, { projectId, facts, count });
    return !known;
  }

  due(): readonly (NewNotification & { readonly count: number })[] {
    return [...this.#tallies].map(([subject, { projectId, facts, count }]) => ({
      kind: this.kind,
      projectId,
      subject,
      facts: { ...facts, [this.unit]: count },
      count,
    }));
  }

  /** Subtracts what a notification reported. More may have happened since. */
  reported({ subject, count }: { readonly subject: string; readonly count: number }): void {
    const tally = this.#tallies.get(subject)!;
    tally.count -= count;
    if (tally.count === 0) this.#tallies.delete(subject);
  }
}
