import type { Pool } from 'pg';
import { timeOfId } from '@gateway/core/events';
import type { Planes } from '../postgres/planes.js';

export type OwnedThing = 'endpoint' | 'subscription' | 'event delivery';

export interface OwnerShare {
  readonly ownerId: string;
  readonly max: number;
}

/**
 * SQL served by the index on project, owner and id. `project` and `owner` are placeholders or SQL
 * expressions.
 */
export function endpointsOfOwner(project: string, owner: string): string {
  return `select p.id from endpoints p where p.project_id = ${project} and p.owner_id = ${owner} and p.deleted_at is null`;
}

const OWNED = `p.project_id = $1 and p.owner_id = $2 and p.deleted_at is null`;
const LOOK_UP: Readonly<Record<Exclude<OwnedThing, 'event delivery'>, string>> = {
  endpoint: `select from endpoints p where ${OWNED} and p.id = $3`,
  subscription: `select from subscriptions s join endpoints p on p.project_id = s.project_id and p.id = s.endpoint_id
                 where ${OWNED} and s.project_id = $1 and s.id = $3 and s.deleted_at is null`,
};

/**
 * Whether the endpoint, or that of the subscription or event delivery, has this owner and is not
 * deleted. Reads by primary key, without a lock.
 */
export async function isOwned(
  { control, data }: Planes,
  projectId: string,
  ownerId: string,
  thing: OwnedThing,
  id: string,
): Promise<boolean> {
  if (thing === 'event delivery') {
    const { rows } = await data.query<{ endpoint_id: string }>({
      name: 'endpoint-of-delivery',
      text: 'select endpoint_id from event_deliveries where project_id = $1 and id = $2 and occurred_at = $3',
      values: [projectId, id, new Date(timeOfId(id))],
    });
    const [delivery] = rows;
    return (
      delivery !== undefined &&
      isOwned({ control, data }, projectId, ownerId, 'endpoint', delivery.endpoint_id)
    );
  }
  const { rowCount } = await control.query({
    name: `is-owned-${thing}`,
    text: LOOK_UP[thing],
    values: [projectId, ownerId, id],
  });
  return rowCount === 1;
}

/** Not deleted. No lock. */
export async function endpointIdsOfOwner(
  pool: Pool,
  projectId: string,
  ownerId: string,
): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>({
    name: 'endpoints-of-owner',
    text: endpointsOfOwner('$1', '$2'),
    values: [projectId, ownerId],
  });
  return rows.map(({ id }) => id);
}

/** Not deleted. */
export async function ownedAmong(
  pool: Pool,
  projectId: string,
  ownerId: string,
  endpointIds: readonly string[],
): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>({
    name: 'owned-among',
    text: `${endpointsOfOwner('$1', '$2')} and p.id = any ($3::uuid[])`,
    values: [projectId, ownerId, endpointIds],
  });
  return rows.map(({ id }) => id);
}
