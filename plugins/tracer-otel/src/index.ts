import { hostname } from 'node:os';
import { refuseSecondTracer, type TracerContext, type TracerPlugin } from '@gateway/plugin';
import { context as contexts, diag, DiagLogLevel, propagation, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-grpc';
// Only the tracer provider: `NodeSDK` would also send metrics and logs, to localhost, unless the environment forbids it.
import { core, node, resources } from '@opentelemetry/sdk-node';
import { collectorOf, type Settings } from './collector.js';

/** An export that fails is tried again within this time; closing waits for the last one. */
const EXPORT_TIMEOUT_MS = 4_000;
/** Spans come in bursts, as batches of deliveries end. What does not fit is dropped, not waited for. */
const QUEUE_MAX = 16_384;
const EXPORT_MAX = 1_024;
const EXPORT_EVERY_MS = 2_000;
const TELL_EVERY_MS = 60_000;

/** Sends spans by OTLP over gRPC: https://opentelemetry.io/docs/specs/otlp/#otlpgrpc */
const plugin: TracerPlugin<Settings> = { start };

export default plugin;

function start(settings: Settings, context: TracerContext): Promise<{ close(): Promise<void> }> {
  refuseSecondTracer();
  const exporter = new OTLPTraceExporter({ ...collectorOf(settings), timeoutMillis: EXPORT_TIMEOUT_MS });
  const failed = tellOfFailures(settings.collector_url, context);
  const provider = new node.NodeTracerProvider({
    resource: resources
      .defaultResource()
      // Before what the environment says (OTEL_RESOURCE_ATTRIBUTES), which is meant for this one thing and wins.
      .merge(resources.resourceFromAttributes({ 'deployment.environment.name': context.environment }))
      .merge(resources.detectResources({ detectors: [resources.envDetector] }))
      .merge(
        resources.resourceFromAttributes({
          'service.name': context.serviceName,
          'service.version': context.serviceVersion,
          'host.name': hostname(),
          'process.pid': process.pid,
        }),
      ),
    sampler: new node.ParentBasedSampler({ root: new node.TraceIdRatioBasedSampler(settings.sample_rate) }),
    spanProcessors: [
      new node.BatchSpanProcessor(exporter, {
        maxQueueSize: QUEUE_MAX,
        maxExportBatchSize: EXPORT_MAX,
        scheduledDelayMillis: EXPORT_EVERY_MS,
        exportTimeoutMillis: EXPORT_TIMEOUT_MS,
      }),
    ],
  });
  provider.register();
  return Promise.resolve({
    close: async () => {
      // A collector that is away is no reason to stay.
      await provider.shutdown().catch(failed);
      trace.disable();
      contexts.disable();
      propagation.disable();
      diag.disable();
    },
  });
}

/** A collector that refuses or is away is told of in the log; spans are lost then, deliveries are not. Returns what tells of an error. */
function tellOfFailures(collector: string, { log }: TracerContext): (error: unknown) => void {
  let toldAt = -Infinity;
  const failed = (error: unknown) => {
    if (Date.now() - toldAt < TELL_EVERY_MS) return;
    toldAt = Date.now();
    const reason = error instanceof Error ? error.message : String(error);
    log?.warn({ tracer: 'otel', collector }, `spans were not sent and are lost: ${reason.trim()}`);
  };
  core.setGlobalErrorHandler(failed);
  const nothing = () => {};
  diag.setLogger(
    { error: failed, warn: failed, info: nothing, debug: nothing, verbose: nothing },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  return failed;
}
