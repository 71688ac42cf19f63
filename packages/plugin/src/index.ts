export * from './acknowledging.js';
export * from './deadline.js';
export * from './errors.js';
export * from './manifest.js';
export * from './metrics.js';
export * from './source.js';
export * from './token-request.js';
export * from './tracer.js';
export { clip } from './clip.js';
