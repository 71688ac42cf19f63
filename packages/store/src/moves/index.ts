export * from './assign-project.js';
export * from './moves.js';
