import type { Pool } from 'pg';
import { timeOfId } from '@gateway/core/events';
import { insertCountDeltas, unfinishedEvents } from '../counts/count-deltas.js';
import { opaque } from '../postgres/columns.js';
import type { Planes } from '../postgres/planes.js';
import { listEventStates, type EventFilter } from './event-log.js';
import type { EventRef } from './event-ref.js';

/* Locks: the finished rows, in id order, as briefly as agents lock a row to record routes. */
const REPLAY = `
  with over as materialized (
    select project_id, id, source_id, status from events
    where project_id = $1 and id = any ($2::uuid[]) and occurred_at between $3 and $4 and status <> 'pending' order by id for update
  ),
  e as (
    update events e set status = 'pending', outcome = null, replayed = $5
    where e.project_id = $1 and e.id = any ($2::uuid[]) and e.occurred_at between $3 and $4 and ${opaque('e.id in (select id from over)')}
    returning e.id
  ),
  counted as (${insertCountDeltas(unfinishedEvents('over'))})
  select id from e`;

/**
 * Agents route the events by the current subscriptions. One commit. An endpoint that already has a
 * delivery of the event gets no other; with `force`, it gets one for each matching subscription
 * that has none. The caller must signal the returned events.
 */
export async function replayEvents(
  pool: Pool,
  projectId: string,
  ids: readonly string[],
  { force = false } = {},
): Promise<EventRef[]> {
  const sorted = [...ids].sort();
  if (sorted.length === 0) return [];
  const { rows } = await pool.query<{ id: string }>({
    name: 'replay-events',
    text: REPLAY,
    values: [
      projectId,
      sorted,
      new Date(timeOfId(sorted[0]!)),
      new Date(timeOfId(sorted.at(-1)!)),
      !force,
    ],
  });
  return rows.map(({ id }) => ({ projectId, id, occurredAtMs: timeOfId(id) }));
}

export interface ReplayStep {
  readonly count: number;
  /** To signal. Empty in a dry run. */
  readonly replayed: readonly EventRef[];
  /** Null at the end. */
  readonly next: string | null;
}

const BATCH = 1_000;

/**
 * Finished ones, oldest first, a thousand per commit. A dry run only counts. `after` is the `next`
 * of an earlier step.
 */
export async function* replaySelected(
  planes: Planes,
  projectId: string,
  { after, ...filter }: EventFilter & { readonly after?: string | undefined },
  { dryRun, force = false }: { dryRun: boolean; force?: boolean | undefined },
): AsyncGenerator<ReplayStep, void, void> {
  for (let next: string | null | undefined = after; next !== null;) {
    const page = await listEventStates(planes, projectId, filter, {
      perPage: BATCH,
      direction: 'next',
      sort: 'ASC',
      cursor: next,
    });
    const ids = page.content.filter(({ status }) => status !== 'pending').map(({ id }) => id);
    const replayed = dryRun ? [] : await replayEvents(planes.data, projectId, ids, { force });
    next = page.hasNextPage ? page.nextPageCursor : null;
    yield { count: dryRun ? ids.length : replayed.length, replayed, next };
  }
}
