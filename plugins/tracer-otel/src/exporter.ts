import type { Outages } from '@gateway/plugin';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-grpc';
import { core, type tracing } from '@opentelemetry/sdk-node';
import type { Collector } from './collector.js';

/** Sends to the collector, and tells of what became of each batch. A batch that fails is tried again within `timeoutMs`. */
export function exporterTo(collector: Collector, { timeoutMs, told }: { timeoutMs: number; told: Outages }): tracing.SpanExporter {
  const exporter = new OTLPTraceExporter({ ...collector, timeoutMillis: timeoutMs });
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.code === core.ExportResultCode.SUCCESS) told.worked();
        else told.failed(result.error?.message ?? 'the collector did not take them', spans.length);
        done(result);
      }),
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  };
}
