import { computed } from '@preact/signals';
import { projectId } from '../router/project-path.js';
import { projects } from './projects.js';
import { session } from './session.js';

const RANK = { viewer: 0, member: 1, admin: 2, owner: 3 } as const;
export type Role = keyof typeof RANK;

/** The role of the user in the organisation of the shown project; undefined while it is not known. */
export const role = computed<Role | undefined>(() => {
  const project = projects.value?.find(({ uid }) => uid === projectId.value);
  const organisations = session.value?.organisations ?? [];
  const own = project ? organisations.find(({ uid }) => uid === project.organisation_id) : undefined;
  return own?.role;
});

/** Whether the user may do what this role may. The server decides: pages only leave out what it would refuse. */
export function may(wanted: Role): boolean {
  return role.value === undefined || RANK[role.value] >= RANK[wanted];
}
