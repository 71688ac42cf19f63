export { backoffMs, repeat, withTimeout } from './timing.js';
export { type ComponentState, Health, readySentence, statesOnly } from './health.js';
export { Lifecycle, untilSignal } from './lifecycle.js';
export { ProjectQueues } from './project-queues.js';
export { ProjectPace, workOfEvents } from './project-pace.js';
export { inSlices } from './slices.js';
export { VERSION } from './version.js';
