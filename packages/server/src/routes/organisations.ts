import type { OrganisationRow } from '@gateway/store';
import { organisationsOf } from '../authenticate.js';
import { accountRoute, type Route } from '../route.js';

function view({ id, ...row }: OrganisationRow): unknown {
  return { uid: id, ...row };
}

export const organisationRoutes: readonly Route[] = [
  accountRoute(
    { method: 'get', path: '/organisations', summary: 'Lists the organisations of the user of the key.' },
    async ({ parts, caller }) => {
      const organisations = await organisationsOf(caller, parts);
      return { message: 'organisations', data: { content: organisations.map(view) } };
    },
  ),
];
