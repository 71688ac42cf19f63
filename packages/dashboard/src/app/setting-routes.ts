import { may } from '../session/access.js';
import { session } from '../session/session.js';
import type { PageRoute } from './page-route.js';

/** Pages about the project itself, the people and the instance. */
export const settingRoutes: readonly PageRoute[] = [
  { path: '/projects/:project/start', load: () => import('../pages/start/start.js') },
  { path: '/projects/:project/api-keys', load: () => import('../pages/keys/project-keys.js'), nav: { label: 'API keys', key: 'k' } },
  { path: '/new-project', load: () => import('../pages/start/new-project.js') },
  { path: '/people', load: () => import('../pages/people/people.js'), nav: { label: 'People', key: 'u' } },
  {
    path: '/audit',
    load: () => import('../pages/audit/audit.js'),
    nav: { label: 'Audit log', key: 'a', isShown: () => Boolean(session.value?.organisations.some(({ role }) => may('admin', role))) },
  },
  { path: '/account', load: () => import('../pages/account/account.js'), nav: { label: 'Your account', key: 'm' } },
];
