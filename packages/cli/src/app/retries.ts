import type { BatchRetry } from '@gateway/client';
import { escapeLine } from '../output/escape-terminal.js';
import { counted } from '../output/table.js';

const LISTED = 20;

type OpenBreaker = BatchRetry['behind_breakers'][number];

export interface RetrySums {
  due: number;
  held: number;
  left: number;
  behind: readonly OpenBreaker[];
}

export function noRetries(): RetrySums {
  return { due: 0, held: 0, left: 0, behind: [] };
}

export function addRetries(sums: RetrySums, { due, held, left, behind }: RetrySums): void {
  sums.due += due;
  sums.held += held;
  sums.left += left;
  const all = new Map(sums.behind.map((it) => [it.endpoint_id, it]));
  for (const it of behind) {
    const count = it.count + (all.get(it.endpoint_id)?.count ?? 0);
    all.set(it.endpoint_id, { ...it, count });
  }
  sums.behind = [...all.values()];
}

/**
 * Repeats `step` until nothing is left, and adds its counts to `sums`.
 *
 * @param goesOn receives the progress, from 0 to 1, and returns whether to continue
 */
export async function retrySteps(
  sums: RetrySums,
  step: (after: string | undefined) => Promise<BatchRetry>,
  goesOn: (progress: number) => boolean = () => true,
): Promise<RetrySums> {
  for (let after: string | undefined; ;) {
    const { next, progress, behind_breakers: behind, ...counts } = await step(after);
    addRetries(sums, { ...counts, behind });
    if (!goesOn(progress) || next === null) return sums;
    after = next;
  }
}

/** One for each circuit breaker that deliveries wait for, with how to close it. */
export function breakerLines(behind: readonly OpenBreaker[], now = new Date()): string[] {
  const lines = behind
    .slice(0, LISTED)
    .flatMap(({ endpoint_id: id, endpoint_name: name, ...it }) => {
      const state =
        it.until !== null && new Date(it.until) > now
          ? `is open until ${it.until}`
          : 'is open; the next delivery tries the endpoint, and closes it on success';
      return [
        `${counted(it.count, 'event delivery waits', 'event deliveries wait')}: the circuit breaker of ${escapeLine(name ?? id, 40)} ${state}`,
        `  close it: gateway utils circuit-breakers --endpoint-id ${id} --reset`,
      ];
    });
  const more = behind.length - LISTED;
  return more > 0 ? [...lines, `… and ${more} more; --json shows all`] : lines;
}
