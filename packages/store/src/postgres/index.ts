export * from './database.js';
export * from './migrate.js';
export * from './planes.js';
export * from './pooler.js';
export * from './replicas.js';
export * from './server-facts.js';
export * from './sqlstate.js';
