export { metricsPlace, sendMetrics, serveMetrics } from './metrics-listener.js';
export { metricsAnswer } from './metrics-response.js';
export { showProcess } from './process-series.js';
