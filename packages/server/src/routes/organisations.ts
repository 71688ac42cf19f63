import type { OrganisationRow } from '@gateway/store/config';
import { organisationsOf } from '../auth/authenticate.js';
import { accountRoute, type Route } from '../http/route.js';

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
