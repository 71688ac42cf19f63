import { quantile } from '../reliability/neighbourhood.js';
import { together, type Round } from './arena.js';
import type { Attack } from './attacks.js';

/** Limits of resident megabytes per process. */
const MEMORY_MAX = { server: 500, agent: 600, children: 300 };
/** The limit of the median delivery time, relative to the rounds without the attack. */
const MEDIAN_RATIO_MAX = 1.25;
/** Pauses of the machine, which occur on two shared cores without an attack, are shorter. */
const P99_MAX_MS = 60;

/**
 * A quantile of deliveries in milliseconds, as the median of rounds: a single pause of the machine
 * causes all of the slowest deliveries of its round.
 */
const ofRounds =
  (part: number) =>
  (rounds: readonly Round[]): number =>
    quantile(
      rounds.map(({ deliveries }) => quantile(deliveries, part)),
      0.5,
    );
export const p50Of = ofRounds(0.5);
export const p99Of = ofRounds(0.99);

/** Describes what an attack did to a neighbour; empty if nothing. */
export function faultsOf(
  { seen, never = [], isControl }: Attack,
  {
    alone,
    beside: rounds,
  }: { readonly alone?: readonly Round[]; readonly beside: readonly Round[] },
): string[] {
  const beside = together(rounds);
  const faults = [
    ...seen.filter((what) => !beside.evidence[what]).map((what) => `"${what}" was not seen`),
    ...never.filter((what) => beside.evidence[what]).map((what) => `"${what}" was seen`),
  ];
  if (beside.failures.length > 0)
    faults.push(
      `${beside.failures.length} requests of the neighbour failed, first: ${beside.failures[0]}`,
    );
  for (const [which, most] of Object.entries(MEMORY_MAX)) {
    const has = beside.memory[which as keyof typeof MEMORY_MAX];
    if (has > most) faults.push(`${which} had ${has} MB, more than ${most}`);
  }
  if (alone && !isControl) {
    const [without, with_] = [p50Of(alone), p50Of(rounds)];
    if (with_ > MEDIAN_RATIO_MAX * without)
      faults.push(
        `the p50 of the neighbour rose from ${without.toFixed(1)} to ${with_.toFixed(1)} ms`,
      );
    const p99 = p99Of(rounds);
    if (p99 > P99_MAX_MS)
      faults.push(`the p99 of the neighbour is ${p99.toFixed(1)} ms, more than ${P99_MAX_MS}`);
  }
  return faults;
}
