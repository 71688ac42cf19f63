export {
  admitsToDetails,
  type MetricsAnswer,
  sendMetrics,
  serveMetrics,
  metricsResponse,
} from './metrics-endpoint.js';
export { showProcess } from './process-series.js';
