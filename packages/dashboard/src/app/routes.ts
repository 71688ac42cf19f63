import { isPortal } from '../router/location.js';
import type { PageRoute } from '../router/route.js';
import { may, session } from '../session/session.js';

/** With its navigation label and the key that opens it after `g`. */
type PageEntry = readonly [
  path: string,
  load: PageRoute['load'],
  label?: string,
  key?: string,
  isShown?: () => boolean,
];

/** Paths are relative to the project. */
const PROJECT: readonly PageEntry[] = [
  ['overview', () => import('../pages/overview/overview.js'), 'Overview', 'o'],
  ['events', () => import('../pages/events/event-log.js'), 'Events', 'e'],
  ['events/:id', () => import('../pages/events/event.js')],
  ['deliveries', () => import('../pages/deliveries/delivery-log.js'), 'Deliveries', 'd'],
  ['deliveries/:id', () => import('../pages/deliveries/delivery.js')],
  ['issues', () => import('../pages/issues/issue-list.js'), 'Issues', 'x'],
  ['issues/:id', () => import('../pages/issues/issue.js')],
  ['quarantine', () => import('../pages/quarantine/quarantine-log.js'), 'Quarantine', 'q'],
  ['quarantine/:id', () => import('../pages/quarantine/message.js')],
  ['sources', () => import('../pages/sources/sources.js'), 'Sources', 's'],
  ['sources/new', () => import('../pages/sources/new-source.js')],
  ['sources/:id', () => import('../pages/sources/source.js')],
  ['sources/:id/function', () => import('../pages/function/source-function.js')],
  ['endpoints', () => import('../pages/endpoints/endpoint-list.js'), 'Endpoints', 'p'],
  ['endpoints/new', () => import('../pages/endpoints/endpoint-new.js')],
  ['endpoints/:id', () => import('../pages/endpoints/endpoint.js')],
  [
    'subscriptions',
    () => import('../pages/subscriptions/subscription-list.js'),
    'Subscriptions',
    'b',
    // In the portal, each endpoint links to its subscriptions instead.
    () => !isPortal.value,
  ],
  ['subscriptions/new', () => import('../pages/subscriptions/subscription-form.js')],
  ['subscriptions/:id', () => import('../pages/subscriptions/subscription.js')],
  ['subscriptions/:id/function', () => import('../pages/function/subscription-function.js')],
  ['event-types', () => import('../pages/event-types/event-type-list.js'), 'Event types', 't'],
  ['event-types/new', () => import('../pages/event-types/event-type-form.js')],
  ['event-types/:id', () => import('../pages/event-types/event-type.js')],
  ['start', () => import('../pages/start/start.js')],
  ['api-keys', () => import('../pages/keys/project-keys.js'), 'API keys', 'k'],
  ['portal-links', () => import('../pages/keys/portal-links.js'), 'Portal links', 'l'],
  ['settings', () => import('../pages/project/project-settings.js'), 'Project settings', 'c'],
];

const isAdmin = () => Boolean(session.value?.organisations.some(({ role }) => may('admin', role)));
const isInstanceAdmin = () => session.value?.is_instance_admin === true;

const OUTSIDE: readonly PageEntry[] = [
  ['new-project', () => import('../pages/start/new-project.js')],
  ['people', () => import('../pages/people/people.js'), 'People', 'u'],
  ['audit', () => import('../pages/audit/audit.js'), 'Audit log', 'a', isAdmin],
  ['instance', () => import('../pages/instance/instance.js'), 'Instance', 'i', isInstanceAdmin],
  ['account', () => import('../pages/account/account.js'), 'Your account', 'm'],
];

function route(below: string, [path, load, label, key, isShown]: PageEntry): PageRoute {
  return {
    path: `${below}/${path}`,
    load,
    ...(label && key && { nav: { label, key, ...(isShown && { isShown }) } }),
  };
}

/**
 * The navigation shows routes with `nav`, in this order; any other page belongs to the entry whose
 * path it extends.
 */
export const routes: readonly PageRoute[] = [
  ...PROJECT.map((row) => route('/projects/:project', row)),
  ...OUTSIDE.map((row) => route('', row)),
];

/** Project pages about an owner's endpoints. The API decides which data they show. */
export const portalRoutes: readonly PageRoute[] = [
  { path: '/portal/:project', load: () => import('../pages/endpoints/endpoint-list.js') },
  ...[
    ...['endpoints', 'endpoints/new', 'endpoints/:id'],
    ...['subscriptions', 'subscriptions/new', 'subscriptions/:id'],
    ...['deliveries', 'deliveries/:id', 'event-types', 'event-types/:id'],
  ]
    .flatMap((path) => PROJECT.filter(([it]) => it === path))
    .map((row) => route('/portal/:project', row)),
];
