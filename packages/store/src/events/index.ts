export { createEvent, eventOfKey, type EventRow, findEvent, listEvents } from './event-log.js';
export {
  acceptEvents,
  type EventRef,
  type MessageType,
  type NewEvent,
  type NewEventDelivery,
  type PendingEvent,
  readForgotten,
  readPending,
  recordRoutes,
  type RoutedEvent,
} from './events.js';
export { refOfSignal, signalText } from './signal.js';
