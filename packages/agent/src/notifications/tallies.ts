import type { NewNotification, NotificationFacts } from '@gateway/store/config';

/** Subjects that await a notification. Further ones appear only in the log and the metrics. */
const SUBJECTS_MAX = 4_000;
/** A project's share of `SUBJECTS_MAX`. */
const PROJECT_SUBJECTS_MAX = 1_000;

interface Tally {
  readonly projectId: string;
  readonly facts: NotificationFacts;
  count: number;
}

/** Since each subject's last notification. */
export class Tallies {
  readonly #tallies = new Map<string, Tally>();
  readonly #subjectsOf = new Map<string, number>();

  constructor(
    private readonly kind: NewNotification['kind'],
    private readonly unit: 'messages' | 'deliveries',
  ) {}

  /** `facts` are those of the first time. Returns whether the subject is new. */
  add({ projectId, subject, facts }: Omit<NewNotification, 'kind'>, count: number): boolean {
    const known = this.#tallies.get(subject);
    if (known) {
      known.count += count;
      return false;
    }
    const ofProject = this.#subjectsOf.get(projectId) ?? 0;
    if (this.#tallies.size >= SUBJECTS_MAX || ofProject >= PROJECT_SUBJECTS_MAX) return false;
    this.#tallies.set(subject, { projectId, facts, count });
    this.#subjectsOf.set(projectId, ofProject + 1);
    return true;
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
    if (tally.count > 0) return;
    this.#tallies.delete(subject);
    const { projectId } = tally;
    const ofProject = this.#subjectsOf.get(projectId)! - 1;
    if (ofProject > 0) this.#subjectsOf.set(projectId, ofProject);
    else this.#subjectsOf.delete(projectId);
  }
}
