import { hostname } from 'node:os';
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  context as contexts,
  diag,
  DiagLogLevel,
  propagation,
  trace,
  ROOT_CONTEXT,
  type Context,
  type ContextManager,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-grpc';
import { core, node, resources, type tracing } from '@opentelemetry/sdk-node';
import {
  outages,
  refuseSecondTracer,
  type Outages,
  type PluginLog,
  type TracerContext,
  type TracerPlugin,
} from '@gateway/plugin';
import { collectorOf, type OtlpCollector, type Settings } from './collector.js';
import { explainFailure } from './failure.js';

// Does not use `NodeSDK`, which would also send metrics and logs to localhost unless the
// environment forbids it.

/** Closing waits for the last export. */
const EXPORT_TIMEOUT_MS = 4_000;
/** For a batch, longer than for an export, so that the exporter reports the result. */
const GIVE_UP_MS = EXPORT_TIMEOUT_MS + 500;
/**
 * Spans arrive in bursts when batches of deliveries end. A full queue drops spans and never blocks.
 */
const QUEUE_MAX = 16_384;
const EXPORT_MAX = 1_024;
const EXPORT_EVERY_MS = 2_000;
const WARN_EVERY_MS = 60_000;

const ENVIRONMENT = 'deployment.environment.name';
/** The attribute's name until 2024, which many backends still read. */
const OLD_ENVIRONMENT = 'deployment.environment';

/** OTLP over gRPC: https://opentelemetry.io/docs/specs/otlp/#otlpgrpc */
const plugin: TracerPlugin<Settings> = { start };

export default plugin;

function start(settings: Settings, context: TracerContext): Promise<{ close(): Promise<void> }> {
  refuseSecondTracer();
  const collector = collectorOf(settings);
  const outage = outages(context.log, { tracer: 'otel', collector: settings.collector_url });
  listenToTheSdk(outage, context.log);
  const provider = new node.NodeTracerProvider({
    resource: resourceOf(context),
    sampler: new node.ParentBasedSampler({
      root: new node.TraceIdRatioBasedSampler(settings.sample_rate),
    }),
    spanProcessors: [
      new node.BatchSpanProcessor(exporterTo(collector, settings.collector_url, outage), {
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
      // Closing must not fail because the collector is down. The exporter has already reported
      // that.
      await provider.shutdown().catch(() => undefined);
      trace.disable();
      contexts.disable();
      propagation.disable();
      diag.disable();
    },
  });
}

function exporterTo(
  collector: OtlpCollector,
  given: string,
  outage: Outages,
): tracing.SpanExporter {
  const exporter = new OTLPTraceExporter({ ...collector, timeoutMillis: EXPORT_TIMEOUT_MS });
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.code === core.ExportResultCode.SUCCESS) outage.worked();
        else
          outage.failed(
            explainFailure(result.error?.message ?? 'the collector did not take them', given),
            spans.length,
          );
        done(result);
      }),
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  };
}

/**
 * https://opentelemetry.io/docs/specs/semconv/resource/ OTEL_RESOURCE_ATTRIBUTES may override the
 * environment attribute.
 */
function resourceOf({
  serviceName,
  serviceVersion,
  environment,
}: TracerContext): resources.Resource {
  const given = resources.detectResources({ detectors: [resources.envDetector] });
  const named = given.attributes[ENVIRONMENT] ?? given.attributes[OLD_ENVIRONMENT] ?? environment;
  const own = resources.resourceFromAttributes({
    'service.name': serviceName,
    'service.version': serviceVersion,
    [ENVIRONMENT]: named,
    [OLD_ENVIRONMENT]: named,
    'host.name': hostname(),
    'process.pid': process.pid,
  });
  return resources.defaultResource().merge(given).merge(own);
}

/**
 * At most once a minute. Ignores failed batches, which the exporter reports, and adds dropped spans
 * to the outage.
 */
function listenToTheSdk(outage: Outages, log: PluginLog | undefined): void {
  let warnedAt = -Infinity;
  const ignore = () => {};
  const warn = (sentence: string) => {
    const [, dropped] = /^Dropped (\d+) spans/.exec(sentence) ?? [];
    if (dropped !== undefined) return outage.dropped(Number(dropped));
    if (Date.now() - warnedAt < WARN_EVERY_MS) return;
    warnedAt = Date.now();
    log?.warn({ tracer: 'otel' }, sentence);
  };
  core.setGlobalErrorHandler(ignore);
  const logger = { error: ignore, warn, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

/**
 * Keeps the active span across awaits. Only contexts with a span enter the storage: on Node.js 20,
 * its first use slows down every promise in the process from then on, which costs an agent an
 * eighth of its throughput. The SDK uses a context without a span for each export.
 */
export function activeContext(): ContextManager {
  const storage = new AsyncLocalStorage<Context>();
  const manager: ContextManager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with(context, work, self, ...args) {
      const run = () => work.apply(self as ThisParameterType<typeof work>, args);
      return storage.getStore() === undefined && !trace.getSpan(context)
        ? run()
        : storage.run(context, run);
    },
    bind(context, target) {
      if (typeof target !== 'function') return target;
      const bound: unknown = (...args: unknown[]) =>
        manager.with(context, (): unknown => Reflect.apply(target, undefined, args));
      return bound as typeof target;
    },
    enable: () => manager,
    disable() {
      storage.disable();
      return manager;
    },
  };
  return manager;
}
