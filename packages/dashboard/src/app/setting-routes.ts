import { may } from '../session/access.js';
import { session } from '../session/session.js';
import type { PageRoute } from './page-route.js';

export const settingRoutes: readonly PageRoute[] = [
  { path: '/projects/:project/start', load: () => import('../pages/start/start.js') },
  {
    path: '/projects/:project/api-keys',
    load: () => import('../pages/keys/project-keys.js'),
    nav: { label: 'API keys', key: 'k' },
  },
  {
    path: '/projects/:project/portal-links',
    load: () => import('../pages/keys/portal-links.js'),
    nav: { label: 'Portal links', key: 'l' },
  },
  {
    path: '/projects/:project/settings',
    load: () => import('../pages/project/project-settings.js'),
    nav: { label: 'Project settings', key: 'c' },
  },
  { path: '/new-project', load: () => import('../pages/start/new-project.js') },
  {
    path: '/people',
    load: () => import('../pages/people/people.js'),
    nav: { label: 'People', key: 'u' },
  },
  {
    path: '/audit',
    load: () => import('../pages/audit/audit.js'),
    nav: {
      label: 'Audit log',
      key: 'a',
      isShown: () => Boolean(session.value?.organisations.some(({ role }) => may('admin', role))),
    },
  },
  {
    path: '/instance',
    load: () => import('../pages/instance/instance.js'),
    nav: { label: 'Instance', key: 'i', isShown: () => session.value?.is_instance_admin === true },
  },
  {
    path: '/account',
    load: () => import('../pages/account/account.js'),
    nav: { label: 'Your account', key: 'm' },
  },
];
