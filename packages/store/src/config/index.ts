export { type ApiKeyRow, findApiKey, insertApiKey, masksOfProject, type StoredApiKey } from './api-keys.js';
export { findEndpointAnywhere, generateSecret, liveSecrets, rotateSecret, sealSecret, withSecret } from './endpoint-secrets.js';
export {
  type BreakerEndpoint,
  deleteEndpoint,
  type EndpointFields,
  type EndpointRow,
  findEndpoint,
  insertEndpoint,
  listEndpoints,
  ownerExists,
  readBreakerEndpoints,
  setEndpointStatus,
  updateEndpoint,
} from './endpoints.js';
export { type EventTypeRow, findEventType, importEventTypes, listEventTypes } from './event-types.js';
export {
  type ClaimedNotification,
  claimNotifications,
  endNotifications,
  giveUpNotifications,
  markSent,
  type NewNotification,
  type NotificationFacts,
  readOpenNotifications,
  postponeNotifications,
  type Raised,
  raiseNotifications,
} from './notifications.js';
export { deleteProject, findProject, insertProject, listProjects, type ProjectRow, updateProject } from './projects.js';
export { resealSecrets } from './reseal.js';
export { findSourceAnywhere, type NamedEndpoint, type NamedSubscription, readRouting, type RoutingRecords } from './routing-records.js';
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
  listSourcesOfProjects,
  pauseSource,
  resumeDueSources,
  resumeSource,
  type SourceOfProject,
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
export {
  type BootstrappedUser,
  bootstrapUser,
  listOrganisations,
  organisationExists,
  type OrganisationRow,
  organisationsOfUser,
} from './users.js';
