export { announceDue } from './announce-due.js';
export { type AttemptRecord, recordAttempts } from './delivery-attempts.js';
export {
  type DeliveryAttemptRow,
  type EventDeliveryRow,
  findDeliveryAttempt,
  findEventDelivery,
  listDeliveryAttempts,
  listEventDeliveries,
  resendEventDelivery,
} from './delivery-log.js';
export { claimDue, readClaimed, recoverDeliveries, type Return, returnDeliveries } from './event-deliveries.js';
export {
  explainDeliveries,
  type ExplainedDeliveries,
  type ExplainedDelivery,
  findEventAnywhere,
  findMeanings,
  type FoundEvent,
  keyHeldUntil,
  type OtherMeaning,
  readWaiting,
  type Waiting,
} from './explain-event.js';
export { discardWaiting, holdDeliveries, releaseHeldDeliveries } from './paused-deliveries.js';
export { hastenDeliveries, postponeDue, type Wait, WAIT_REASONS, type WaitReason } from './postponed-deliveries.js';
export { findRetryProjects, type RetryProject } from './retry-projects.js';
export { type RetriedStatus, retryDeliveries, type RetryOutcome, type RetryTally } from './retry.js';
