export * from './open-shards.js';
export * from './shards.js';
