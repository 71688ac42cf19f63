import type { Pool } from 'pg';
import { timeOfId } from '@gateway/core/events';
import type { Planes } from '../postgres/planes.js';

export type OwnedThing = 'endpoint' | 'subscription' | 'event delivery';

export interface OwnerShare {
  readonly ownerId: string;
  readonly max: number;
}

/**
 * Whether the endpoint of the thing has this owner and is not deleted. Reads by primary key,
 * without a lock.
 */
export async function isOwned(
  planes: Planes,
  projectId: string,
  ownerId: string,
  thing: OwnedThing,
  id: string,
): Promise<boolean> {
  const endpointId = thing === 'endpoint' ? id : await endpointOf(planes, projectId, thing, id);
  if (endpointId === undefined) return false;
  return (await endpointIdsOfOwner(planes.control, projectId, ownerId, [endpointId])).length > 0;
}

async function endpointOf(
  { control, data }: Planes,
  projectId: string,
  thing: Exclude<OwnedThing, 'endpoint'>,
  id: string,
): Promise<string | undefined> {
  const { rows } =
    thing === 'subscription'
      ? await control.query<{ endpoint_id: string }>({
          name: 'endpoint-of-subscription',
          text: 'select endpoint_id from subscriptions where project_id = $1 and id = $2 and deleted_at is null',
          values: [projectId, id],
        })
      : await data.query<{ endpoint_id: string }>({
          name: 'endpoint-of-delivery',
          text: 'select endpoint_id from event_deliveries where project_id = $1 and id = $2 and occurred_at = $3',
          values: [projectId, id, new Date(timeOfId(id))],
        });
  return rows[0]?.endpoint_id;
}

/** By default, among all that are not deleted. Reads by the index on project and owner. No lock. */
export async function endpointIdsOfOwner(
  pool: Pool,
  projectId: string,
  ownerId: string,
  among: readonly string[] | null = null,
): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>({
    name: 'endpoints-of-owner',
    text: `select id from endpoints where project_id = $1 and owner_id = $2 and deleted_at is null and ($3::uuid[] is null or id = any ($3))`,
    values: [projectId, ownerId, among],
  });
  return rows.map(({ id }) => id);
}
