export {
  type AgentRow,
  notifyDue,
  sendHeartbeat,
  countAgents,
  listAgents,
  listReaders,
  registerAgent,
  deregisterAgent,
} from './agents.js';
export {
  claimDue,
  claimEvents,
  type ClaimedDelivery,
  type EventDeliveryStatus,
  readClaimed,
  recoverDeliveries,
  type Release,
  releaseDeliveries,
} from './claims.js';
export { type AttemptRecord, recordAttempts } from './delivery-attempts.js';
export {
  type DeliveryAttemptRow,
  type EventDeliveryRow,
  findEventDelivery,
  listDeliveryAttempts,
  listEventDeliveries,
  readTransformedData,
  resendEventDelivery,
} from './delivery-log.js';
export { settleDeliveries, sweepDeliveries } from './settle-deliveries.js';
export {
  expediteDeliveries,
  postponeDue,
  type Wait,
  WAIT_REASONS,
  type WaitReason,
} from './postponed-deliveries.js';
export { findRetryProjects, retryDeliveries, type RetryOutcome, type RetryTally } from './retry.js';
