export { run } from './app/run.js';
