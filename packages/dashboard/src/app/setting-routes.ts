import type { PageRoute } from './page-route.js';

/** Pages about the project itself, the people and the instance. */
export const settingRoutes: readonly PageRoute[] = [
  { path: '/projects/:project/start', load: () => import('../pages/start/start.js') },
  { path: '/new-project', load: () => import('../pages/start/new-project.js') },
];
