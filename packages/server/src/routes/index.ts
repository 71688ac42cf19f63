import type { Route } from '../api/route.js';
import { activityRoutes } from './activity.js';
import { apiKeyRoutes } from './api-keys.js';
import { batchRoutes } from './batch.js';
import { endpointTestRoutes } from './endpoints/endpoint-test.js';
import { endpointRoutes } from './endpoints/endpoints.js';
import { eventDeliveryRoutes } from './event-deliveries.js';
import { eventTypeRoutes } from './event-types.js';
import { eventRoutes } from './events.js';
import { explainRoutes } from './explain.js';
import { instanceRoutes } from './instance.js';
import { organisationRoutes, projectRoutes } from './projects.js';
import { quarantineBatchRoutes } from './quarantine-batch.js';
import { quarantineRoutes } from './quarantine.js';
import { sourceRoutes } from './sources/sources.js';
import { subscriptionRoutes } from './subscriptions.js';

export const routes: readonly Route[] = [
  ...organisationRoutes,
  ...projectRoutes,
  ...activityRoutes,
  ...apiKeyRoutes,
  ...endpointRoutes,
  ...endpointTestRoutes,
  ...subscriptionRoutes,
  ...sourceRoutes,
  ...eventTypeRoutes,
  ...eventRoutes,
  ...explainRoutes,
  ...eventDeliveryRoutes,
  ...batchRoutes,
  ...quarantineRoutes,
  ...quarantineBatchRoutes,
  ...instanceRoutes,
];
