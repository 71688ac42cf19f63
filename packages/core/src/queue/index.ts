export { FairQueue } from './fair-queue.js';
export { Stage, type StageOptions } from './stage.js';
