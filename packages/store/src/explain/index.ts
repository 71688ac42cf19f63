export * from './event-facts.js';
export * from './explain-event.js';
export * from './explain-route.js';
export * from './record.js';
