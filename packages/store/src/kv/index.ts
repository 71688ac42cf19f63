export * from './circuit-breakers.js';
export * from './kv.js';
export * from './memory-kv.js';
export * from './redis-kv.js';
export * from './source-lags.js';
export * from './source-states.js';
export * from './versions.js';
