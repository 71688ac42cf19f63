import type { Querier } from '../postgres/connection.js';
import { batchRows, batchTexts } from '../postgres/columns.js';
import { membersOf, OCCURRED_AT, type EventRef } from './event-ref.js';

/**
 * The CTE `moved` selects the projects of the CTE `u` whose new events belong to another shard. Its
 * table is nearly always empty.
 *
 * @param condition whether to look at all
 */
export const MOVED = (condition = 'true') => `moved as materialized (
    select project_id from moved_projects where (select ${condition} and exists (select from moved_projects)) and project_id in (select project from u)
  )`;

/** The SQL condition is true if the project of `u` takes new events here. */
export const NOT_MOVED = `case when u.project in (select project_id from moved) then false else true end`;

/** Returns which of the projects have moved, with the shard that takes their new events. */
export async function readMoved(
  pool: Querier,
  projectIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await pool.query<{ id: string; shard: string }>({
    name: 'read-moved',
    text: 'select project_id as id, to_shard as shard from moved_projects where project_id = any ($1::uuid[])',
    values: [[...new Set(projectIds)]],
  });
  return new Map(rows.map(({ id, shard }) => [id, shard]));
}

/** A message that a former shard may have accepted. */
export interface MaybeKnown extends EventRef {
  readonly idempotencyKey: string | null;
}

const MAYBE_KNOWN = membersOf<MaybeKnown>('projectId id occurredAtMs idempotencyKey');

/**
 * Returns the ids of messages that a shard has accepted or quarantined, or whose idempotency key it
 * has. Takes no lock.
 */
export async function readKnown(
  pool: Querier,
  messages: readonly MaybeKnown[],
): Promise<ReadonlySet<string>> {
  const { rows } = await pool.query<{ id: string }>({
    name: 'read-known',
    text: `with u as materialized (
             select projectId::uuid as project, id::uuid as message, ${OCCURRED_AT} as occurred_at, idempotencyKey as key
             from ${batchRows(MAYBE_KNOWN)}
           )
           select u.message as id from u join events e on e.project_id = u.project and e.id = u.message and e.occurred_at = u.occurred_at
           union
           select u.message from u join quarantined_messages q on q.project_id = u.project and q.id = u.message
           union
           select u.message from u join idempotency_keys k on k.project_id = u.project and k.key = u.key
           where u.key is not null and k.expires_at > now()`,
    values: batchTexts(messages, MAYBE_KNOWN),
  });
  return new Set(rows.map(({ id }) => id));
}
