export * from './errors.js';
export * from './manifest.js';
export * from './metrics.js';
export * from './prefix.js';
export * from './second-tracer.js';
export * from './settles.js';
export * from './source.js';
export * from './tracer.js';
