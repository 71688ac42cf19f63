export { healthProbe } from './healthz.js';
