export {
  type BreakerEndpoint,
  type BreakerRecord,
  breakerView,
  type BreakerView,
  readBreakerEndpoints,
  readBreakers,
  resetBreaker,
} from './circuit-breakers.js';
export { type Kv, type QueueName, type SharedMap } from './kv.js';
export { MemoryKv } from './memory-kv.js';
export { openKv } from './open-kv.js';
