export * from './activity.js';
export * from './backlog.js';
export * from './count-deltas.js';
export * from './health.js';
export * from './issues.js';
export * from './queue-sample.js';
export * from './stored-sample.js';
export * from './usage.js';
