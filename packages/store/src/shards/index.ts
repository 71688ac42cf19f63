export * from './add-shard.js';
export * from './assign-project.js';
export * from './history.js';
export * from './moves.js';
export * from './open-shards.js';
export * from './remove-shard.js';
export * from './shard-states.js';
export * from './shards.js';
