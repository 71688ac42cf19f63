import { numbered } from '../../support/census.js';
import type { Produced } from './journal.js';

/** Ways to be no ingest message, in turn; each carries its number. */
const poisons: readonly ((n: number) => string)[] = [
  (n) => `not json ${n}`,
  (n) => `{"event_type":"order.created","number":${n}}`,
  (n) => `[${n}]`,
  (n) => `{"event_type":7,"data":{"n":${n}}}`,
  (n) => `{"event_type":"order.created","data":{"n":${n}`,
];

/** The text of a message as it is written to its broker, and found again in quarantine when it is poisoned. */
export function textOf({ n, poisoned }: Pick<Produced, 'n' | 'poisoned'>): string {
  return poisoned ? (poisons[n % poisons.length] as (n: number) => string)(n) : numbered(n);
}
