export { backoffMs, oneAtATime, repeat, withTimeout } from './timing.js';
export {
  type ComponentState,
  failAgain,
  Health,
  type HealthComponent,
  latestOf,
  type OngoingFailure,
  readySentence,
  statesOnly,
} from './health.js';
export { importExtra, missingExtra } from './extra-package.js';
export { Lifecycle, untilSignal } from './lifecycle.js';
export { LoopShares, SHARES_LOOK_MS } from './loop-shares.js';
export { ProjectTurns } from './project-turns.js';
export { inSlices, SLICE_MS, yielding } from './slices.js';
export { type Rate, type TakenTokens, TokenBuckets, workOfEvents } from './token-buckets.js';
export { VERSION } from './version.js';
export { changingPassword, PASSWORD_COMMAND_MS } from './password.js';
