export * from './event-log.js';
export * from './event-ref.js';
export * from './events.js';
export * from './kept-messages.js';
export * from './message-arrivals.js';
export * from './project-fences.js';
export * from './replay-events.js';
export * from './verdicts.js';
