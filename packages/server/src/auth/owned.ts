import { GatewayError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import { isOwned, type OwnedThing, type ProjectRow } from '@gateway/store/config';
import type { Planes } from '@gateway/store/postgres';
import type { Access } from './access.js';

/**
 * The kind of resource in each collection, or null if it belongs to the project and every owner
 * sees it.
 */
const THINGS: Readonly<Record<string, OwnedThing | null>> = {
  endpoints: 'endpoint',
  subscriptions: 'subscription',
  eventdeliveries: 'event delivery',
  'event-types': null,
};

type RequireOwned = (wanted: {
  readonly project: ProjectRow;
  readonly planes: Planes;
  readonly ownerId: string;
  readonly id: string | undefined;
}) => Promise<void>;

/**
 * Throws `not_found` unless the resource in the path belongs to the portal link's owner. Fails at
 * start if a route for portal links has resources of unknown ownership.
 */
export function ownedBy({
  path,
  portal,
}: { readonly path: string } & Pick<Access, 'portal'>): RequireOwned {
  const [, collection = '', ...rest] = path.split('/');
  const thing = THINGS[collection];
  if (portal && rest.includes(':id') && thing === undefined)
    throw new Error(`${path} is for portal links, but the owner of its resources is unknown`);
  if (!thing || !rest.includes(':id')) return () => Promise.resolve();
  return async ({ project, planes, ownerId, id = '' }) => {
    if (!isId(id) || !(await isOwned(planes, project.id, ownerId, thing, id)))
      throw new GatewayError('not_found', { thing, id });
  };
}
