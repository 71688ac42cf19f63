export { healthProbe } from './healthz.js';
export { readHealthReport, type HealthReport } from './report.js';
