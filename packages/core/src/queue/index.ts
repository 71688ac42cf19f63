export { FairQueue } from './fair-queue.js';
export { Stage } from './stage.js';
