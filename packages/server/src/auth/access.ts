import { GatewayError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import {
  ROLES,
  type PortalKey,
  type ProjectRow,
  type Role,
  type UserKey,
} from '@gateway/store/config';
import { isInstanceAdmin, listOrganisations, type Membership } from '@gateway/store/people';
import type { Database } from '@gateway/store/postgres';
import type { Caller } from './process-credentials.js';
import type { RecordCache } from './record-cache.js';

interface AccessContext {
  readonly records: RecordCache;
  readonly database: Pick<Database, 'knex'>;
}

export interface Access {
  /** In the organisation or, for a project key, in the project. */
  readonly role: Role;
  /** A resource with `read`, or with `write`, which includes `read`. */
  readonly scope: string;
  /** Rejects project keys. */
  readonly needsPerson?: true;
  /** Accepts project keys outside their project. */
  readonly admitsProject?: true;
  /**
   * A portal link reaches only its owner's resources. Ids in the path are checked before the route
   * runs; the route itself must check ids in the body and pass `call.ownerId` to its lists.
   */
  readonly portal?: 'any' | 'managing' | undefined;
}

export function includes(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed);
}

export function managesEndpoints({ role }: Pick<PortalKey, 'role'>): boolean {
  return includes(role, 'member');
}

/** Throws `scope_missing`. */
export function requireScope(caller: Caller, { scope }: Pick<Access, 'scope'>): void {
  if (caller.type === 'process' || !caller.scopes || covers(caller.scopes, scope)) return;
  throw new GatewayError('scope_missing', { scope, key: `gw_${caller.mask}_…` });
}

/**
 * Throws `forbidden` if the caller would grant a scope that it does not have. Null grants every
 * scope, as people have. Every route that gives access to a key, link or person must call this.
 */
export function requireScopesFor(caller: Caller, scopes: readonly string[] | null): void {
  if (caller.type === 'process' || !caller.scopes) return;
  const own = caller.scopes;
  const lacking = scopes?.filter((scope) => !covers(own, scope));
  if (lacking?.length === 0) return;
  const given = lacking ? `the scopes ${lacking.join(', ')}` : 'access without scopes';
  throw new GatewayError('forbidden', {
    reason: `this API key has the scopes ${own.join(', ')} and cannot grant ${given}`,
  });
}

/** A test compares them with the routes. */
export const LINK_SCOPES: Readonly<Record<PortalKey['role'], readonly string[]>> = {
  viewer: [
    'activity:read',
    'endpoints:write',
    'eventDeliveries:write',
    'eventTypes:read',
    'subscriptions:read',
  ],
  member: [
    'activity:read',
    'endpoints:write',
    'eventDeliveries:write',
    'eventTypes:read',
    'subscriptions:write',
  ],
};

function covers(scopes: readonly string[], needed: string): boolean {
  return scopes.includes(needed) || scopes.includes(needed.replace(/:read$/, ':write'));
}

/** Undefined for process credentials. Throws `forbidden` for project keys and portal links. */
export function personOf(caller: Caller): UserKey | undefined {
  if (caller.type === 'project' || caller.type === 'portal')
    throw new GatewayError('forbidden', {
      reason: 'this API key belongs to a project; use a personal key for this',
    });
  return caller.type === 'process' ? undefined : caller;
}

/** Throws `forbidden`. */
export function reachAccount(caller: Caller, { role, admitsProject }: Access): void {
  if (admitsProject && caller.type === 'project') return requireRole(caller.role ?? 'admin', role);
  const person = personOf(caller);
  if (person?.role) requireRole(person.role, role);
}

/** Throws `forbidden` for project keys and portal links. */
export async function organisationsOf(
  caller: Caller,
  { database, records }: AccessContext,
): Promise<Membership[]> {
  const person = personOf(caller);
  if (!person)
    return (await listOrganisations(database.knex)).map((row) => ({ ...row, role: 'owner' }));
  const { role: most } = person;
  const rows = await records.organisations(person.user_id);
  return rows.map((row) => (most && !includes(most, row.role) ? { ...row, role: most } : row));
}

/**
 * Throws `forbidden` if the role is insufficient, and `not_found` if the caller is not a member.
 */
export async function reachOrganisation(
  caller: Caller,
  id: string,
  { role }: Access,
  context: AccessContext,
): Promise<Membership> {
  const organisation = (await organisationsOf(caller, context)).find((it) => it.id === id);
  if (!organisation) throw new GatewayError('not_found', { thing: 'organisation', id });
  requireRole(organisation.role, role);
  return organisation;
}

/**
 * Throws `forbidden` if the caller's access is insufficient, and `not_found` if the project does
 * not exist or the person is not a member of its organisation.
 */
export async function reachProject(
  caller: Caller,
  projectId: string,
  access: Access,
  context: AccessContext,
): Promise<ProjectRow> {
  const isKey = caller.type === 'project' || caller.type === 'portal';
  if (isKey && caller.project_id !== projectId)
    throw new GatewayError('forbidden', {
      reason: `this API key has access only to the project ${caller.project_id}`,
    });
  const project = isId(projectId) ? await context.records.project(projectId) : undefined;
  const missing = () => new GatewayError('not_found', { thing: 'project', id: projectId });
  if (!project) throw missing();
  if (caller.type === 'portal') {
    if (!access.portal)
      throw new GatewayError('forbidden', {
        reason: 'a portal link gives access only to the endpoints of its owner',
      });
    if (access.portal === 'managing' && !managesEndpoints(caller))
      throw new GatewayError('forbidden', {
        reason: 'this portal link cannot manage endpoints: its can_manage_endpoint is false',
      });
  } else if (caller.type === 'project') {
    if (access.needsPerson) personOf(caller);
    requireRole(caller.role ?? 'admin', access.role);
  } else if (caller.type !== 'process') {
    const organisation = (await organisationsOf(caller, context)).find(
      ({ id }) => id === project.organisation_id,
    );
    if (!organisation) throw missing();
    requireRole(organisation.role, access.role);
  }
  return project;
}

/** Throws `forbidden`. Not cached, because such requests are rare. */
export async function requireInstanceAdmin(
  caller: Caller,
  { database }: Pick<AccessContext, 'database'>,
): Promise<void> {
  if (caller.type === 'process') return;
  const isUser = caller.type === 'personal' || caller.type === 'session';
  // A key with a role can have fewer rights than its user.
  if (isUser && caller.role === null && (await isInstanceAdmin(database.knex, caller.user_id)))
    return;
  throw new GatewayError('forbidden', {
    reason:
      'this affects the whole instance: it requires a process credential, or the personal key of an instance admin, which `gateway bootstrap` creates',
  });
}

function requireRole(role: Role, needed: Role): void {
  if (!includes(role, needed))
    throw new GatewayError('forbidden', {
      reason: `this requires the role ${needed}, but the credentials have the role ${role}`,
    });
}
