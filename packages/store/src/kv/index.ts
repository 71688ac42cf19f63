export {
  type BreakerRecord,
  type BreakerView,
  breakerView,
  readBreakers,
  resetBreaker,
} from './circuit-breakers.js';
export { type Kv, type QueueName, type SharedMap, type Signal, type SignalQueue } from './kv.js';
export { MemoryKv } from './memory-kv.js';
export { openKv, retryKv } from './redis-kv.js';
export {
  type PartitionLag,
  type SourceLag,
  LAG_TTL_MS,
  PARTITIONS_MAX,
  readSourceLag,
  writeSourceLag,
} from './source-lags.js';
export { KV_VERSIONS, decodeValue, encodeValue } from './versions.js';
export {
  type ReportedState,
  type SourceState,
  readSourceStates,
  writeSourceState,
} from './source-states.js';
