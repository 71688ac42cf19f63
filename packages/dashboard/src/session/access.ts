import { computed } from '@preact/signals';
import { isPortal, projectId } from '../router/project-path.js';
import { portal } from './portal.js';
import { projects } from './projects.js';
import { session } from './session.js';

const RANK = { viewer: 0, member: 1, admin: 2, owner: 3 } as const;
export type Role = keyof typeof RANK;

/** The user's role in an organisation; undefined if unknown. */
export function roleIn(organisationId: string | undefined): Role | undefined {
  return session.value?.organisations.find(({ uid }) => uid === organisationId)?.role;
}

/** The user's role in the organisation of the shown project; undefined while unknown. */
export const role = computed<Role | undefined>(() =>
  isPortal.value
    ? 'viewer'
    : roleIn(projects.value?.find(({ uid }) => uid === projectId.value)?.organisation_id),
);

/**
 * True if a role, by default the user's role in the shown project, includes another. Only hides
 * controls: the server decides.
 */
export function may(wanted: Role, own = role.value): boolean {
  return own === undefined || RANK[own] >= RANK[wanted];
}

/** True if the user can change endpoints and subscriptions; in the portal, the link decides. */
export function mayManage(): boolean {
  return isPortal.value ? portal.value?.can_manage_endpoint === true : may('member');
}

/** True if the user can resend deliveries and send test events. */
export function maySend(): boolean {
  return isPortal.value || may('member');
}
