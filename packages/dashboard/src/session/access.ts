import { computed } from '@preact/signals';
import { isPortal, projectId } from '../router/project-path.js';
import { portal } from './portal.js';
import { projects } from './projects.js';
import { session } from './session.js';

const RANK = { viewer: 0, member: 1, admin: 2, owner: 3 } as const;
export type Role = keyof typeof RANK;

/** The role of the user in an organisation; undefined when it is not known. */
export function roleIn(organisationId: string | undefined): Role | undefined {
  return session.value?.organisations.find(({ uid }) => uid === organisationId)?.role;
}

/** The role of the user in the organisation of the shown project; undefined while it is not known. */
export const role = computed<Role | undefined>(() =>
  isPortal.value ? 'viewer' : roleIn(projects.value?.find(({ uid }) => uid === projectId.value)?.organisation_id),
);

/** Whether a role, by default that in the shown project, includes another. The server decides: pages only leave out what it would refuse. */
export function may(wanted: Role, own = role.value): boolean {
  return own === undefined || RANK[own] >= RANK[wanted];
}

/** Whether endpoints and their subscriptions may be changed: in the portal its link says so. */
export function mayManage(): boolean {
  return isPortal.value ? portal.value?.can_manage_endpoint === true : may('member');
}

/** Whether deliveries may be sent again, and test events sent. */
export function maySend(): boolean {
  return isPortal.value || may('member');
}
