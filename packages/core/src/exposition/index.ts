export {
  admitsToDetails,
  type MetricsAnswer,
  metricsPlace,
  sendMetrics,
  serveMetrics,
  metricsResponse,
} from './metrics-endpoint.js';
export { showProcess } from './process-series.js';
