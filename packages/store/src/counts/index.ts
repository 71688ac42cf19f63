export { keepCounts } from './fold-counts.js';
export { startSampler } from './sampler.js';
