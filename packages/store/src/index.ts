export * from './agents.js';
export * from './announce-due.js';
export * from './breakers.js';
export * from './database.js';
export * from './database-time.js';
export * from './delivery-attempts.js';
export * from './event-deliveries.js';
export * from './examine.js';
export { acceptEvents, readForgotten, readPending, recordRoutes } from './events.js';
export type { EventBatch, EventRef, EventStatus, MessageType, NewEvent, NewEventDelivery, PendingEvent, RoutedEvent } from './events.js';
export { MemoryKv } from './kv-memory.js';
export * from './kv.js';
export * from './open-kv.js';
export * from './pool-use.js';
export * from './postponed-deliveries.js';
export * from './probe.js';
export * from './quarantine.js';
export * from './refused-content.js';
export * from './signal.js';
export * from './snapshot.js';
export * from './upkeep.js';
export * from './migrate.js';
export * from './notifications.js';
export * from './api-keys.js';
export { foldOnce, keepCounts } from './counts.js';
export * from './endpoints.js';
export * from './event-delivery-log.js';
export * from './event-log.js';
export * from './held-deliveries.js';
export * from './organisations.js';
export type { Page, PageRequest } from './page.js';
export * from './projects.js';
export * from './retention.js';
export {
  discardQuarantinedMessage,
  findQuarantinedMessage,
  listQuarantinedMessages,
  quarantinedBytes,
  type QuarantinedMessageRow,
  type QuarantinedMessageWhole,
  type QuarantineFilter,
  type QuarantineStatus,
} from './quarantine-log.js';
export * from './quarantine-listing.js';
export * from './quarantine-replay.js';
export * from './retry.js';
export * from './sampler.js';
export * from './retry-projects.js';
export * from './sources.js';
export * from './subscriptions.js';
export * from './usage.js';
export * from './usage-counter.js';
export * from './users.js';
