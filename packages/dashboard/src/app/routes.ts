import type { PageRoute } from './page-route.js';
import { settingRoutes } from './setting-routes.js';

/**
 * Every page. The navigation shows routes with `nav`, in this order; other pages belong to the
 * entry that their path begins with.
 */
export const routes: readonly PageRoute[] = [
  {
    path: '/projects/:project/overview',
    load: () => import('../pages/overview/overview.js'),
    nav: { label: 'Overview', key: 'o' },
  },
  {
    path: '/projects/:project/events',
    load: () => import('../pages/events/event-log.js'),
    nav: { label: 'Events', key: 'e' },
  },
  { path: '/projects/:project/events/:id', load: () => import('../pages/events/event.js') },
  {
    path: '/projects/:project/deliveries',
    load: () => import('../pages/deliveries/delivery-log.js'),
    nav: { label: 'Deliveries', key: 'd' },
  },
  {
    path: '/projects/:project/deliveries/:id',
    load: () => import('../pages/deliveries/delivery.js'),
  },
  {
    path: '/projects/:project/quarantine',
    load: () => import('../pages/quarantine/quarantine-log.js'),
    nav: { label: 'Quarantine', key: 'q' },
  },
  {
    path: '/projects/:project/quarantine/:id',
    load: () => import('../pages/quarantine/message.js'),
  },
  {
    path: '/projects/:project/sources',
    load: () => import('../pages/sources/sources.js'),
    nav: { label: 'Sources', key: 's' },
  },
  { path: '/projects/:project/sources/new', load: () => import('../pages/sources/new-source.js') },
  { path: '/projects/:project/sources/:id', load: () => import('../pages/sources/source.js') },
  {
    path: '/projects/:project/sources/:id/function',
    load: () => import('../pages/function/source-function.js'),
  },
  {
    path: '/projects/:project/endpoints',
    load: () => import('../pages/endpoints/endpoint-list.js'),
    nav: { label: 'Endpoints', key: 'p' },
  },
  {
    path: '/projects/:project/endpoints/new',
    load: () => import('../pages/endpoints/endpoint-new.js'),
  },
  {
    path: '/projects/:project/endpoints/:id',
    load: () => import('../pages/endpoints/endpoint.js'),
  },
  {
    path: '/projects/:project/subscriptions',
    load: () => import('../pages/subscriptions/subscription-list.js'),
    nav: { label: 'Subscriptions', key: 'b' },
  },
  {
    path: '/projects/:project/subscriptions/new',
    load: () => import('../pages/subscriptions/subscription-new.js'),
  },
  {
    path: '/projects/:project/subscriptions/:id',
    load: () => import('../pages/subscriptions/subscription.js'),
  },
  {
    path: '/projects/:project/subscriptions/:id/function',
    load: () => import('../pages/function/subscription-function.js'),
  },
  {
    path: '/projects/:project/event-types',
    load: () => import('../pages/event-types/event-type-list.js'),
    nav: { label: 'Event types', key: 't' },
  },
  {
    path: '/projects/:project/event-types/new',
    load: () => import('../pages/event-types/event-type-new.js'),
  },
  {
    path: '/projects/:project/event-types/:name',
    load: () => import('../pages/event-types/event-type.js'),
  },
  ...settingRoutes,
];
