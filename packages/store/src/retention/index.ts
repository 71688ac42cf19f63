export { runMaintenance } from './maintenance.js';
export { applyRetention } from './retention.js';
