export * from './agents.js';
export * from './claims.js';
export * from './delivery-attempts.js';
export * from './delivery-log.js';
export * from './endpoint-outages.js';
export * from './postponed-deliveries.js';
export * from './retry.js';
export * from './settle-deliveries.js';
