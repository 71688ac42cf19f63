export { countIngest } from './count-ingest.js';
export { type Meter } from './meter.js';
export { API_SOURCE, OTHER, type SeriesName } from './series.js';
