import { GatewayError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import { ROLES, type PortalKey, type ProjectRow, type Role, type UserKey } from '@gateway/store/config';
import { listOrganisations, type Membership } from '@gateway/store/people';
import type { Database } from '@gateway/store/postgres';
import type { Caller } from './caller.js';
import type { RecordCache } from './record-cache.js';

interface Context {
  readonly records: RecordCache;
  readonly database: Pick<Database, 'knex'>;
}

/** What a route asks of its caller, declared with the route. */
export interface Access {
  /** The least role in the organisation; that of a project key counts in its project. */
  readonly role: Role;
  /** What a key with scopes must have too: a resource with `read` or `write`, which includes `read`. */
  readonly scope: string;
  /** Only a person or a credential of the process, not the key of a project. */
  readonly needsPerson?: true;
  /**
   * Portal links may, for what belongs to their owner: any link, or only one that manages endpoints. A thing in the path is checked before the route
   * runs; the route itself hands `call.ownerId` on to the lists it reads, and checks the ids in its body.
   */
  readonly portal?: 'any' | 'managing' | undefined;
}

/** Whether a role includes another. */
export function includes(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed);
}

/** Whether a portal link may create, change and delete the endpoints of its owner. */
export function managesEndpoints({ role }: Pick<PortalKey, 'role'>): boolean {
  return includes(role, 'member');
}

/** Throws `scope_missing` for a key that has scopes, but not that of the route. */
export function requireScope(caller: Caller, { scope }: Pick<Access, 'scope'>): void {
  if (caller.type === 'process' || !caller.scopes || covers(caller.scopes, scope)) return;
  throw new GatewayError('scope_missing', { scope, key: `gw_${caller.mask}_…` });
}

/**
 * Every route that gives access calls it: to a key, a link or a person. `scopes` are those of the access; null: all, as people have. Throws `forbidden` for a caller
 * that lacks one of them.
 */
export function requireScopesFor(caller: Caller, scopes: readonly string[] | null): void {
  if (caller.type === 'process' || !caller.scopes) return;
  const own = caller.scopes;
  const lacking = scopes?.filter((scope) => !covers(own, scope));
  if (lacking?.length === 0) return;
  const given = lacking ? `the scopes ${lacking.join(', ')}` : 'access without scopes';
  throw new GatewayError('forbidden', { reason: `this API key has the scopes ${own.join(', ')} and cannot give ${given}` });
}

/** The scopes that a portal link amounts to. A test compares them with the routes. */
export const LINK_SCOPES: Readonly<Record<PortalKey['role'], readonly string[]>> = {
  viewer: ['activity:read', 'endpoints:write', 'eventDeliveries:write', 'eventTypes:read', 'subscriptions:read'],
  member: ['activity:read', 'endpoints:write', 'eventDeliveries:write', 'eventTypes:read', 'subscriptions:write'],
};

function covers(scopes: readonly string[], needed: string): boolean {
  return scopes.includes(needed) || scopes.includes(needed.replace(/:read$/, ':write'));
}

/** The caller as a person; throws `forbidden` for the keys of a project. */
export function personOf(caller: Caller): UserKey | undefined {
  if (caller.type === 'project' || caller.type === 'portal')
    throw new GatewayError('forbidden', { reason: 'this API key belongs to a project; only a personal key may do this' });
  return caller.type === 'process' ? undefined : caller;
}

/** What belongs to the caller as a person. Throws `forbidden` for the keys of a project, and for a key whose own role does not suffice. */
export function reachAccount(caller: Caller, { role }: Access): void {
  const person = personOf(caller);
  if (person?.role) requireRole(person.role, role);
}

/** The organisations that a caller may act for, with the role in each; throws `forbidden` for the keys of a project. */
export async function organisationsOf(caller: Caller, { database, records }: Context): Promise<Membership[]> {
  const person = personOf(caller);
  if (!person) return (await listOrganisations(database.knex)).map((row) => ({ ...row, role: 'owner' }));
  const { role: most } = person;
  const rows = await records.organisations(person.user_id);
  return rows.map((row) => (most && !includes(most, row.role) ? { ...row, role: most } : row));
}

/** The organisation of a path, with the role of the caller in it. Throws `forbidden` for a role that does not suffice, and `not_found` also for those of others. */
export async function reachOrganisation(caller: Caller, id: string, { role }: Access, context: Context): Promise<Membership> {
  const organisation = (await organisationsOf(caller, context)).find((it) => it.id === id);
  if (!organisation) throw new GatewayError('not_found', { thing: 'organisation', id });
  requireRole(organisation.role, role);
  return organisation;
}

/** The project of a path. Throws `forbidden`, or `not_found` also for projects in organisations of others. */
export async function reachProject(caller: Caller, projectId: string, access: Access, context: Context): Promise<ProjectRow> {
  const isKey = caller.type === 'project' || caller.type === 'portal';
  if (isKey && caller.project_id !== projectId)
    throw new GatewayError('forbidden', { reason: `this API key belongs to the project ${caller.project_id} and reaches no other` });
  const project = isId(projectId) ? await context.records.project(projectId) : undefined;
  const missing = () => new GatewayError('not_found', { thing: 'project', id: projectId });
  if (!project) throw missing();
  if (caller.type === 'portal') {
    if (!access.portal) throw new GatewayError('forbidden', { reason: 'a portal link reaches only the endpoints of its owner' });
    if (access.portal === 'managing' && !managesEndpoints(caller))
      throw new GatewayError('forbidden', { reason: 'this portal link does not manage endpoints: its can_manage_endpoint is false' });
  } else if (caller.type === 'project') {
    if (access.needsPerson) personOf(caller);
    requireRole(caller.role ?? 'admin', access.role);
  } else if (caller.type !== 'process') {
    const organisation = (await organisationsOf(caller, context)).find(({ id }) => id === project.organisation_id);
    if (!organisation) throw missing();
    requireRole(organisation.role, access.role);
  }
  return project;
}

function requireRole(role: Role, needed: Role): void {
  if (!includes(role, needed))
    throw new GatewayError('forbidden', { reason: `this needs the role ${needed}, and the credentials have the role ${role}` });
}
