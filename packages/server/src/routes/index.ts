import type { Route } from '../api/route.js';
import { activityRoutes } from './activity.js';
import { apiKeyRoutes } from './people/api-keys.js';
import { auditLogRoutes } from './people/audit-log.js';
import { authRoutes } from './people/auth.js';
import { oidcRoutes } from './people/oidc.js';
import { eventDeliveryRoutes } from './deliveries/event-deliveries.js';
import { resendRoutes } from './deliveries/resend.js';
import { retryRoutes } from './deliveries/retry.js';
import { endpointTestRoutes } from './endpoints/endpoint-test.js';
import { endpointRoutes } from './endpoints/endpoints.js';
import { orderedKeyRoutes } from './endpoints/ordered-keys.js';
import { eventTypeRoutes } from './event-types.js';
import { eventRoutes } from './events/events.js';
import { replayRoutes } from './events/replay.js';
import { scheduledEventRoutes } from './events/scheduled-events.js';
import { explainRoutes } from './explain.js';
import { instanceRoutes } from './instance.js';
import { issueRoutes } from './issues.js';
import { quarantineBatchRoutes } from './quarantine-batch.js';
import { organisationRoutes } from './people/organisations.js';
import { portalLinkRoutes } from './people/portal-links.js';
import { projectRoutes } from './projects.js';
import { quarantineRoutes } from './quarantine.js';
import { shardRoutes } from './shards.js';
import { sourceRoutes } from './sources/sources.js';
import { subscriptionRoutes } from './subscriptions/subscriptions.js';
import { userRoutes } from './people/users.js';

export const routes: readonly Route[] = [
  ...authRoutes,
  ...oidcRoutes,
  ...userRoutes,
  ...organisationRoutes,
  ...auditLogRoutes,
  ...projectRoutes,
  ...activityRoutes,
  ...apiKeyRoutes,
  ...portalLinkRoutes,
  ...endpointRoutes,
  ...orderedKeyRoutes,
  ...endpointTestRoutes,
  ...subscriptionRoutes,
  ...sourceRoutes,
  ...eventTypeRoutes,
  ...eventRoutes,
  ...scheduledEventRoutes,
  ...explainRoutes,
  ...eventDeliveryRoutes,
  ...replayRoutes,
  ...retryRoutes,
  ...resendRoutes,
  ...issueRoutes,
  ...quarantineRoutes,
  ...quarantineBatchRoutes,
  ...instanceRoutes,
  ...shardRoutes,
];
