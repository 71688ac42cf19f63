export * from './history.js';
export * from './moves.js';
export * from './open-shards.js';
export * from './shards.js';
