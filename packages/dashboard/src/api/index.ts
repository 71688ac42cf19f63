export * from './change.js';
export * from './client.js';
export * from './read.js';
