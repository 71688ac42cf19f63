import { timeAt } from '../postgres/columns.js';

export interface EventRef {
  readonly projectId: string;
  readonly id: string;
  /** The broker time in epoch milliseconds. Also the first 48 bits of the id. */
  readonly occurredAtMs: number;
}

export const OCCURRED_AT = timeAt('occurredAtMs::bigint');
export const DUE_AT = `case when dueInMs = 'Infinity' then 'infinity' else now() + dueInMs::float8 * interval '1 millisecond' end`;

/** In the order of the statement's parameters. */
export function membersOf<Row>(names: string): readonly (keyof Row & string)[] {
  return names.split(' ') as (keyof Row & string)[];
}
export const REF = membersOf<EventRef>('projectId id occurredAtMs');
