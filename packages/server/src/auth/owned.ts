import { GatewayError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import { isOwned, type OwnedThing, type ProjectRow } from '@gateway/store/config';
import type { Database } from '@gateway/store/postgres';
import type { Access } from './access.js';

/** Things in the path of a route; null: they belong to the project and every owner sees them. */
const THINGS: Readonly<Record<string, OwnedThing | null>> = {
  endpoints: 'endpoint',
  subscriptions: 'subscription',
  eventdeliveries: 'event delivery',
  'event-types': null,
};

type RequireOwned = (
  { database }: { readonly database: Pick<Database, 'pool'> },
  wanted: {
    readonly project: ProjectRow;
    readonly ownerId: string;
    readonly id: string | undefined;
  },
) => Promise<void>;

/**
 * Returns the check that the thing in a route's path belongs to a portal link's owner; otherwise it
 * throws `not_found`. Throws for portal routes with things of unknown ownership.
 */
export function ownedBy({
  path,
  portal,
}: { readonly path: string } & Pick<Access, 'portal'>): RequireOwned {
  const [, collection = '', ...rest] = path.split('/');
  const thing = THINGS[collection];
  if (portal && rest.includes(':id') && thing === undefined)
    throw new Error(`${path} is for portal links, but whose its things are is not known`);
  if (!thing || !rest.includes(':id')) return () => Promise.resolve();
  return async ({ database }, { project, ownerId, id = '' }) => {
    if (!isId(id) || !(await isOwned(database.pool, project.id, ownerId, thing, id)))
      throw new GatewayError('not_found', { thing, id });
  };
}
