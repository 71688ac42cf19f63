import { outages, refuseSecondTracer, type Outages, type PluginLog, type TracerContext, type TracerPlugin } from '@gateway/plugin';
import { context as contexts, diag, DiagLogLevel, propagation, trace } from '@opentelemetry/api';
// Only the tracer provider: `NodeSDK` would also send metrics and logs, to localhost, unless the environment forbids it.
import { core, node } from '@opentelemetry/sdk-node';
import { activeContext } from './active-context.js';
import { collectorOf, type Settings } from './collector.js';
import { exporterTo } from './exporter.js';
import { resourceOf } from './resource.js';

/** An export that fails is tried again within this time; closing waits for the last one. */
const EXPORT_TIMEOUT_MS = 4_000;
/** Longer, so that it is the exporter that says what became of a batch. */
const GIVE_UP_MS = EXPORT_TIMEOUT_MS + 500;
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
  const collector = collectorOf(settings);
  const told = outages(context.log, { tracer: 'otel', collector: settings.collector_url });
  listenToTheSdk(told, context.log);
  const provider = new node.NodeTracerProvider({
    resource: resourceOf(context),
    sampler: new node.ParentBasedSampler({ root: new node.TraceIdRatioBasedSampler(settings.sample_rate) }),
    spanProcessors: [
      new node.BatchSpanProcessor(exporterTo(collector, { timeoutMs: EXPORT_TIMEOUT_MS, told }), {
        maxQueueSize: QUEUE_MAX,
        maxExportBatchSize: EXPORT_MAX,
        scheduledDelayMillis: EXPORT_EVERY_MS,
        exportTimeoutMillis: GIVE_UP_MS,
      }),
    ],
  });
  provider.register({ contextManager: activeContext() });
  return Promise.resolve({
    close: async () => {
      // A collector that is away is no reason to stay; the exporter has told of it.
      await provider.shutdown().catch(() => undefined);
      trace.disable();
      contexts.disable();
      propagation.disable();
      diag.disable();
    },
  });
}

/** The exporter tells of failed batches. What else the SDK warns of is told of once a minute. */
function listenToTheSdk(told: Outages, log: PluginLog | undefined): void {
  let toldAt = -Infinity;
  const nothing = () => {};
  const warn = (sentence: string) => {
    const [, dropped] = /^Dropped (\d+) spans/.exec(sentence) ?? [];
    if (dropped !== undefined) return told.dropped(Number(dropped));
    if (Date.now() - toldAt < TELL_EVERY_MS) return;
    toldAt = Date.now();
    log?.warn({ tracer: 'otel' }, sentence);
  };
  core.setGlobalErrorHandler(nothing);
  diag.setLogger(
    { error: nothing, warn, info: nothing, debug: nothing, verbose: nothing },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}
