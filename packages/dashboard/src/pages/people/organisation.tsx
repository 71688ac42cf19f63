import { Options } from '../../components/form/options.js';
import { query, setQuery } from '../../router/location.js';
import { roleIn, type Role } from '../../session/access.js';
import { preferredProject } from '../../session/projects.js';
import { session } from '../../session/session.js';

export interface ShownOrganisation {
  readonly uid: string;
  readonly name: string;
  readonly role: Role;
}

/**
 * The organisation in the query, of the last project, or the first; undefined for a user without
 * one.
 */
export function shownOrganisation(): ShownOrganisation | undefined {
  const mine = session.value?.organisations ?? [];
  const of = (id: string | null | undefined) => mine.find(({ uid }) => uid === id);
  return of(query.value.get('organisation')) ?? of(preferredProject()?.organisation_id) ?? mine[0];
}

/** Switches the organisation; renders nothing for a user with only one. */
export function OrganisationSwitch({ shown }: { readonly shown: ShownOrganisation }) {
  const mine = session.value?.organisations ?? [];
  if (mine.length < 2) return null;
  return (
    <select
      class="organisation-switch"
      aria-label="Organisation"
      value={shown.uid}
      onChange={(event) => setQuery({ organisation: event.currentTarget.value })}
    >
      <Options options={mine.map(({ uid, name }) => [uid, name])} chosen={shown.uid} />
    </select>
  );
}

/** Each role includes the permissions of the roles before it. */
export const ROLES: readonly (readonly [role: Role, label: string])[] = [
  ['viewer', 'Viewer: read everything, payloads too'],
  ['member', 'Member: change endpoints and sources, send again'],
  ['admin', 'Admin: projects, API keys, people, audit log'],
  ['owner', 'Owner: other owners, delete the organisation'],
];

/** The roles that the user can grant: only owners grant ownership. */
export function givableRoles(organisation: string): typeof ROLES {
  return roleIn(organisation) === 'owner' ? ROLES : ROLES.filter(([role]) => role !== 'owner');
}
