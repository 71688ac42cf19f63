export { metricsPlace, sendMetrics, serveMetrics } from './metrics-listener.js';
export { metricsResponse } from './metrics-response.js';
export { showProcess } from './process-series.js';
