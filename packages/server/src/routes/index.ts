import type { Route } from '../api/route.js';
import { endpointRoutes } from './endpoints.js';
import { eventDeliveryRoutes } from './event-deliveries.js';
import { eventTypeRoutes } from './event-types.js';
import { eventRoutes } from './events.js';
import { organisationRoutes, projectRoutes } from './projects.js';
import { quarantineRoutes } from './quarantine.js';
import { sourceRoutes } from './sources.js';
import { subscriptionRoutes } from './subscriptions.js';

/** All routes of the management API. */
export const routes: readonly Route[] = [
  ...organisationRoutes,
  ...projectRoutes,
  ...endpointRoutes,
  ...subscriptionRoutes,
  ...sourceRoutes,
  ...eventTypeRoutes,
  ...eventRoutes,
  ...eventDeliveryRoutes,
  ...quarantineRoutes,
];
