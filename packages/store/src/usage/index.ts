export * from './usage-counter.js';
export * from './usage.js';
