export { type ApiKeyRow, findApiKey, insertApiKey, masksOfProject, type StoredApiKey } from './api-keys.js';
export { generateSecret, liveSecrets, rotateSecret, sealSecret, withSecret } from './endpoint-secrets.js';
export {
  deleteEndpoint,
  type EndpointFields,
  type EndpointRow,
  findEndpoint,
  insertEndpoint,
  listEndpoints,
  ownerExists,
  setEndpointStatus,
  updateEndpoint,
} from './endpoints.js';
export { type EventTypeRow, findEventType, listEventTypes } from './event-types.js';
export {
  type ClaimedNotification,
  claimNotifications,
  endNotifications,
  giveUpNotifications,
  markSent,
  type NewNotification,
  type NotificationFacts,
  openNotifications,
  postponeNotifications,
  type Raised,
  raiseNotifications,
} from './notifications.js';
export { listOrganisations, type OrganisationRow, organisationsOfUser } from './organisations.js';
export { deleteProject, findProject, insertProject, listProjects, type ProjectRow, updateProject } from './projects.js';
export { type NamedEndpoint, type NamedSubscription, readRouting, type RoutingRecords } from './routing-records.js';
export {
  type CircuitBreakerConfig,
  deactivateEndpoint,
  DEFAULT_SIGNATURE,
  DEFAULT_STRATEGY,
  type EndpointAuthentication,
  type EndpointRecord,
  type PausableSource,
  type ProjectConfig,
  type ProjectRecord,
  readConfigVersion,
  readSnapshot,
  type SecretRecord,
  type SignatureConfig,
  type Snapshot,
  type SourceRecord,
  type Strategy,
  type SubscriptionRecord,
} from './snapshot.js';
export {
  deleteSource,
  findSource,
  insertSource,
  listSources,
  pauseSource,
  resumeDueSources,
  resumeSource,
  type SourceRow,
  updateSource,
} from './sources.js';
export {
  deleteSubscription,
  findSubscription,
  insertSubscription,
  listSubscriptions,
  type SubscriptionFields,
  type SubscriptionRow,
  updateSubscription,
} from './subscriptions.js';
export { type BootstrappedUser, bootstrapUser } from './users.js';
export { importEventTypes } from './event-types.js';
export { findEndpointAnywhere } from './endpoint-secrets.js';
export { resealSecrets } from './reseal.js';
export { organisationExists } from './organisations.js';
export { findSourceAnywhere } from './routing-records.js';
