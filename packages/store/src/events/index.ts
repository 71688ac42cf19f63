export { type CreatedEvent, type Creation, eventCreator, type EventCreator } from './create-events.js';
export { type EventFilter, eventOfKey, type EventRow, findEvent, listEvents } from './event-log.js';
export {
  acceptEvents,
  type EventRef,
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
export { replayEvents, replaySelected } from './replay-events.js';
