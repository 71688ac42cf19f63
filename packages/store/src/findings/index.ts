export { clock } from './wording.js';
export * from './dependencies.js';
export { readHealthReport, type HealthReport } from './report.js';
export { readConditions, SOURCES_MAX } from './source-conditions.js';
export { SEVERITIES } from './table.js';
