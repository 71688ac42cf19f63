import { batchOf, timeAt, type BatchColumn } from '../postgres/columns.js';

export interface EventRef {
  readonly projectId: string;
  readonly id: string;
  /** The broker time in epoch milliseconds. Also the first 48 bits of the id. */
  readonly occurredAtMs: number;
}

export const REF_COLUMNS: readonly BatchColumn<EventRef>[] = [
  ['project_id', 'projectId', 'uuid'],
  ['id', 'id', 'uuid'],
  ['occurred_at', 'occurredAtMs', (ms) => timeAt(`${ms}::bigint`)],
];
export const REF = batchOf(REF_COLUMNS);

/** By the primary key of events and deliveries. */
export const isSame = (row: string, other: string): string =>
  `${row}.project_id = ${other}.project_id and ${row}.id = ${other}.id and ${row}.occurred_at = ${other}.occurred_at`;

/** The endpoint makes a single row found whichever index by project the planner uses. */
export const isSameDelivery = (row: string, other: string): string =>
  `${isSame(row, other)} and ${row}.endpoint_id = ${other}.endpoint_id`;

/** An event and its deliveries share a millisecond, with which ids begin: a short range of ids. */
export const sharesTime = (id: string, other: string): string =>
  `${id} between (left(${other}::text, 13) || '-0000-0000-000000000000')::uuid and (left(${other}::text, 13) || '-ffff-ffff-ffffffffffff')::uuid`;

export const dueAt = (ms: string): string =>
  `case when ${ms} = 'Infinity' then 'infinity' else now() + ${ms}::float8 * interval '1 millisecond' end`;
