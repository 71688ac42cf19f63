export * from './keys.js';
export { advanceKeys, repairKeys, sweepKeys, type SweepPosition } from './settle-keys.js';
export type { OrderedKey, KeyTurn } from '../events/turns.js';
