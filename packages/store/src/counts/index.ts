export { startCountUpdates } from './apply-deltas.js';
export { startSampler } from './sampler.js';
