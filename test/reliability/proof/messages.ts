import { numbered } from '../../support/census.js';
import type { Produced } from './journal.js';

/** Kinds of invalid ingest messages, in rotation; each contains its number. */
const poisons: readonly ((n: number) => string)[] = [
  (n) => `not json ${n}`,
  (n) => `{"event_type":"order.created","number":${n}}`,
  (n) => `[${n}]`,
  (n) => `{"event_type":7,"data":{"n":${n}}}`,
  (n) => `{"event_type":"order.created","data":{"n":${n}`,
];

/** The text of a message as written to its broker, and as found in quarantine if it is poisoned. */
export function textOf({ n, poisoned }: Pick<Produced, 'n' | 'poisoned'>): string {
  return poisoned ? (poisons[n % poisons.length] as (n: number) => string)(n) : numbered(n);
}
