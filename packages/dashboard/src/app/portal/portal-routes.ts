import type { PageRoute } from '../page-route.js';

const endpoints = () => import('../../pages/endpoints/endpoint-list.js');

/** The project pages about an owner's endpoints. The API decides what they show. */
export const portalRoutes: readonly PageRoute[] = [
  { path: '/portal/:project', load: endpoints },
  { path: '/portal/:project/endpoints', load: endpoints, nav: { label: 'Endpoints', key: 'p' } },
  {
    path: '/portal/:project/endpoints/new',
    load: () => import('../../pages/endpoints/endpoint-new.js'),
  },
  {
    path: '/portal/:project/endpoints/:id',
    load: () => import('../../pages/endpoints/endpoint.js'),
  },
  {
    path: '/portal/:project/subscriptions',
    load: () => import('../../pages/subscriptions/subscription-list.js'),
  },
  {
    path: '/portal/:project/subscriptions/new',
    load: () => import('../../pages/subscriptions/subscription-new.js'),
  },
  {
    path: '/portal/:project/subscriptions/:id',
    load: () => import('../../pages/subscriptions/subscription.js'),
  },
  {
    path: '/portal/:project/deliveries',
    load: () => import('../../pages/deliveries/delivery-log.js'),
    nav: { label: 'Deliveries', key: 'd' },
  },
  {
    path: '/portal/:project/deliveries/:id',
    load: () => import('../../pages/deliveries/delivery.js'),
  },
  {
    path: '/portal/:project/event-types',
    load: () => import('../../pages/event-types/event-type-list.js'),
    nav: { label: 'Event types', key: 't' },
  },
  {
    path: '/portal/:project/event-types/:name',
    load: () => import('../../pages/event-types/event-type.js'),
  },
];
