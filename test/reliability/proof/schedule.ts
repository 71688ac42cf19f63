import { faults as table, type Fault } from './faults.js';
import { random } from './random.js';

export interface Planned {
  /** Milliseconds after the first message. */
  readonly atMs: number;
  /** A row of the table of faults. */
  readonly kind: string;
  /** One of the row's targets. */
  readonly target: string;
  /** The duration until the repair. */
  readonly forMs: number;
}

/** The density of a schedule and the durations of its faults, as ranges. */
export interface Form {
  /** Leaves out faults that need anything else. */
  readonly has: readonly NonNullable<Fault['needs']>[];
  readonly gapMs: readonly [number, number];
  readonly lasts: { readonly [Lasting in Fault['lasts']]: readonly [number, number] };
}

/**
 * For `npm test`: as short as meaningful. A freeze usually still outlasts an agent's lease and its
 * Kafka session.
 */
export const shortForm: Form = {
  has: [],
  gapMs: [500, 4_000],
  lasts: { moment: [0, 0], outage: [300, 3_000], stall: [2_000, 6_000], freeze: [5_000, 10_000] },
};

/** Has a standby: these runs take the time of their faults, however long each commit takes. */
export const longForm: Form = {
  has: ['standby'],
  gapMs: [500, 7_500],
  lasts: { moment: [0, 0], outage: [300, 10_000], stall: [2_000, 20_000], freeze: [5_000, 60_000] },
};

/** Faults of the same target never overlap; this is the minimum pause between them. */
const REST_MS = 1_000;

/**
 * Draws a schedule, deterministic for its arguments. Kinds are dealt from a deck that is reshuffled
 * when it is empty, so that each occurs; faults of different targets can overlap.
 * @param options.count number of faults
 * @param options.faults the kinds; by default those of one shard
 */
export function schedule({
  seed,
  count,
  form,
  faults = table,
}: {
  seed: number;
  count: number;
  form: Form;
  faults?: readonly Fault[];
}): Planned[] {
  const draw = random(seed);
  const all = faults.filter(({ needs }) => needs === undefined || form.has.includes(needs));
  const planned: Planned[] = [];
  const busyUntilMs = new Map<string, number>();
  let deck: Fault[] = [];
  let atMs = 1_000;
  while (planned.length < count) {
    if (deck.length === 0) deck = draw.shuffled(all);
    const free = (fault: Fault) =>
      fault.targets.filter((target) => (busyUntilMs.get(target) ?? 0) <= atMs);
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

/** The time of the last repair, in milliseconds after the first message. */
export function endOf(planned: readonly Planned[]): number {
  return Math.max(0, ...planned.map(({ atMs, forMs }) => atMs + forMs));
}
