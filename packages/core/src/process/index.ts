export { backoffMs } from './backoff.js';
export { type ComponentState, Health, readySentence } from './health.js';
export { Lifecycle, untilSignal } from './lifecycle.js';
export { repeat } from './repeat.js';
export { VERSION } from './version.js';
export { withTimeout } from './with-timeout.js';
