import { faults, type Fault } from './faults.js';
import { random } from './random.js';

/** A fault that is going to be done. */
export interface Planned {
  /** Milliseconds after the first message. */
  readonly atMs: number;
  /** A row of the table of faults. */
  readonly kind: string;
  /** What it is done to, one of the row's targets. */
  readonly target: string;
  /** How long it lasts until it is undone. */
  readonly forMs: number;
}

/** How dense a schedule is, and how long its faults last, from and to. */
export interface Form {
  readonly gapMs: readonly [number, number];
  readonly lasts: { readonly [Lasting in Fault['lasts']]: readonly [number, number] };
}

/** For `npm test`: as fast as is honest. A freeze still outlasts the lease of an agent, and its session with Kafka, more often than not. */
export const shortForm: Form = {
  gapMs: [500, 4_000],
  lasts: { moment: [0, 0], outage: [300, 3_000], stall: [2_000, 6_000], freeze: [5_000, 10_000] },
};

export const longForm: Form = {
  gapMs: [500, 7_500],
  lasts: { moment: [0, 0], outage: [300, 10_000], stall: [2_000, 20_000], freeze: [5_000, 60_000] },
};

/** What is done to one thing never overlaps, and it has so long to come back before its next fault. */
const REST_MS = 1_000;

/**
 * Draws a schedule: the same for the same arguments. Kinds come as cards of a deck that is shuffled anew when it is used up, so that each gets its
 * turn; faults of different targets may overlap.
 * @param options.count how many faults
 */
export function schedule({ seed, count, form }: { seed: number; count: number; form: Form }): Planned[] {
  const draw = random(seed);
  const planned: Planned[] = [];
  const busyUntilMs = new Map<string, number>();
  let deck: Fault[] = [];
  let atMs = 1_000;
  while (planned.length < count) {
    if (deck.length === 0) deck = draw.shuffled(faults);
    const free = (fault: Fault) => fault.targets.filter((target) => (busyUntilMs.get(target) ?? 0) <= atMs);
    const place = deck.findIndex((fault) => free(fault).length > 0);
    if (place >= 0) {
      const [fault] = deck.splice(place, 1) as [Fault];
      const target = draw.pick(free(fault));
      const forMs = draw.between(...form.lasts[fault.lasts]);
      planned.push({ atMs, kind: fault.kind, target, forMs });
      busyUntilMs.set(target, atMs + forMs + REST_MS);
    }
    atMs += draw.between(...form.gapMs);
  }
  return planned;
}

/** When the last fault of a schedule is undone, in milliseconds after the first message. */
export function endOf(planned: readonly Planned[]): number {
  return Math.max(0, ...planned.map(({ atMs, forMs }) => atMs + forMs));
}
