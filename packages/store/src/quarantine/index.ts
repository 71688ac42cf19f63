export * from './messages.js';
export * from './replay.js';
export * from './selection.js';
