export * from './add-shard.js';
export * from './open-shards.js';
export * from './remove-shard.js';
export * from './set-shard.js';
export * from './shard-states.js';
export * from './shards.js';
