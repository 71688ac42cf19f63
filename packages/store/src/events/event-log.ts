import type { Pool } from 'pg';
import { messageOf, timeOfId, type WholeMessage, type EventSearch } from '@gateway/core/events';
import type { RoutingOutcome } from '@gateway/core/routing';
import { findSourceIds } from '../config/sources.js';
import type { EventStatus, MessageType } from './events.js';
import {
  readLog,
  type Groups,
  type LogQuery,
  type Span,
  type Values,
} from '../pagination/log-page.js';
import type { PageRequest, PageResult } from '../pagination/page.js';
import { searchLog, type SearchOptions } from '../pagination/search-log.js';
import type { Planes } from '../postgres/planes.js';

/** Larger data is omitted from lists. */
const LISTED_DATA_BYTES = 16_384;

export interface EventRow {
  readonly project_id: string;
  readonly id: string;
  readonly occurred_at: Date;
  readonly accepted_at: Date;
  readonly source_id: string | null;
  readonly coordinates: string;
  readonly event_type: string;
  readonly message_type: MessageType;
  readonly endpoint_id: string | null;
  readonly owner_id: string | null;
  readonly idempotency_key: string | null;
  readonly status: EventStatus;
  readonly outcome: string | null;
  readonly headers: string;
  readonly message: string | null;
  readonly notes: string | null;
  /** Null in a list if too large. */
  readonly data: string | null;
  readonly data_bytes: number;
}

const COLUMNS = `e.project_id, e.id, e.occurred_at, e.accepted_at, e.source_id, e.coordinates, e.event_type, e.message_type, e.endpoint_id, e.owner_id, e.idempotency_key,
  e.status, e.outcome, e.headers, e.message, e.notes, octet_length(e.data) as data_bytes`;

export interface EventFilter extends Span {
  readonly sourceId?: string | undefined;
  readonly eventType?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  readonly status?: EventStatus | undefined;
  /**
   * Other than `routed`. Only with `idempotencyKey` beside another filter, because their index has
   * no other column.
   */
  readonly outcomes?: readonly RoutingOutcome[] | undefined;
  readonly search?: EventSearch | undefined;
}

/** Indexes use this id for events created over the API. */
const NO_SOURCE = '00000000-0000-0000-0000-000000000000';
const STATUSES: readonly EventStatus[] = ['pending', 'processed', 'failed'];

/**
 * By id, omitting data larger than 16 KiB. An index serves every combination of filters, except
 * `search`, which reads for at most a second.
 */
export function listEvents(
  planes: Planes,
  projectId: string,
  filter: EventFilter,
  page: PageRequest,
  options?: Omit<SearchOptions, 'search'>,
): Promise<PageResult<EventRow>> {
  const columns = `${COLUMNS}, case when octet_length(e.data) <= ${LISTED_DATA_BYTES} then e.data end as data`;
  return readEvents(planes, projectId, filter, { columns, page, options });
}

export function listEventStates(
  planes: Planes,
  projectId: string,
  filter: EventFilter,
  page: PageRequest,
): Promise<PageResult<Pick<EventRow, 'id' | 'status'>>> {
  const columns = `e.id, e.status${filter.search ? ', e.headers' : ''}`;
  return readEvents(planes, projectId, filter, { columns, page });
}

async function readEvents<Row extends { readonly id: string }>(
  planes: Planes,
  projectId: string,
  { search, ...filter }: EventFilter,
  {
    columns,
    page,
    options,
  }: {
    columns: string;
    page: PageRequest;
    options?: Omit<SearchOptions, 'search'> | undefined;
  },
): Promise<PageResult<Row>> {
  const { data } = planes;
  const query = { ...(await selected(planes, projectId, filter)), columns };
  if (!search) return readLog(data, query, page);
  // A word that is an event type selects its events by their index.
  const [word, ...others] = search.words;
  if (word !== undefined && others.length === 0 && filter.eventType === undefined) {
    const ofType = { ...(await selected(planes, projectId, { eventType: word })), columns: 'e.id' };
    const one = { perPage: 1, direction: 'next', sort: 'DESC' } as const;
    if ((await readLog(data, ofType, one)).content.length > 0)
      return readEvents(planes, projectId, { ...filter, eventType: word }, { columns, page });
  }
  return searchLog(data, query, page, { search, ...options });
}

async function selected(
  { control }: Planes,
  projectId: string,
  filter: EventFilter,
): Promise<Omit<LogQuery, 'columns'>> {
  const { status, eventType, sourceId, idempotencyKey, outcomes } = filter;
  const few = (values: Values) => [
    ...values.where(idempotencyKey, (it) => `e.idempotency_key = ${it}`),
    ...values.where(status, (it) => `e.status = ${it}::event_status`),
    ...values.where(eventType, (it) => `e.event_type = ${it}`),
    ...values.where(sourceId, (it) => `e.source_id = ${it}::uuid`),
    ...values.where(outcomes, (it) => `e.outcome = any (${it}::text[])`),
  ];
  const log = { table: 'events', projectId, span: filter } as const;
  if (idempotencyKey !== undefined) return { ...log, few };
  if (outcomes?.length)
    return {
      ...log,
      groups: { keys: [['e.outcome', outcomes, 'text']], predicate: `e.outcome <> 'routed'` },
    };
  if (status === undefined && eventType === undefined && sourceId === undefined) return log;
  const sources =
    sourceId === undefined ? [NO_SOURCE, ...(await findSourceIds(control, projectId))] : [sourceId];
  const groups: Groups = {
    keys: [
      ['e.event_type', eventType === undefined ? undefined : [eventType], 'text'],
      [`coalesce(e.source_id, '${NO_SOURCE}')`, sources, 'uuid'],
      ['e.status', status ? [status] : STATUSES, 'event_status'],
    ],
  };
  return { ...log, groups };
}

/** Null for an event without a source. */
export function messageOfRow(
  row: Pick<EventRow, 'id' | 'source_id' | 'coordinates' | 'message'>,
): WholeMessage | null {
  const { id, source_id: sourceId, coordinates, message } = row;
  return messageOf({ sourceId, coordinates, occurredAtMs: timeOfId(id), message }) ?? null;
}

/** Undefined if the event is not there. */
export async function findMessageOfEvent(
  pool: Pool,
  projectId: string,
  id: string,
): Promise<{ readonly message: WholeMessage | null; readonly headers: string } | undefined> {
  const { rows } = await pool.query<
    Pick<EventRow, 'id' | 'source_id' | 'coordinates' | 'message' | 'headers'>
  >({
    name: 'find-message-of-event',
    text: `select e.id, e.source_id, e.coordinates, e.message, e.headers from events e where e.project_id = $1 and e.id = $2 and e.occurred_at = $3`,
    values: [projectId, id, new Date(timeOfId(id))],
  });
  return rows[0] && { message: messageOfRow(rows[0]), headers: rows[0].headers };
}

export interface WholeEvent extends EventRow {
  readonly data: string;
}

/** With its data, regardless of size. */
export async function findEvent(
  pool: Pool,
  projectId: string,
  id: string,
): Promise<WholeEvent | undefined> {
  const { rows } = await pool.query<WholeEvent>({
    name: 'find-event',
    text: `select ${COLUMNS}, e.data from events e where e.project_id = $1 and e.id = $2 and e.occurred_at = $3`,
    values: [projectId, id, new Date(timeOfId(id))],
  });
  return rows[0];
}
