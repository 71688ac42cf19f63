export { firstArrivals } from './message-arrivals.js';
export { type EventFilter, type EventRow, findEvent, listEvents, originalOf } from './event-log.js';
export type { EventRef } from './event-ref.js';
export {
  acceptEvents,
  type MessageType,
  type NewEvent,
  type NewEventDelivery,
  type PendingEvent,
  type StoredMessage,
  readStalePending,
  readMessages,
  readPending,
  recordRoutes,
  decodeSignal,
  encodeSignal,
} from './events.js';
export {
  bytesText,
  type EventMessage,
  eventMessageBytes,
  findEventMessage,
  KEPT_BYTES_MAX,
  type KeptMessage,
  keptParts,
  type MessageOfEvents,
} from './kept-messages.js';
export { replayEvents, replaySelected } from './replay-events.js';
