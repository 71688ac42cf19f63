import { open, type FileHandle } from 'node:fs/promises';
import {
  PluginError,
  refuseSecondTracer,
  type TracerContext,
  type TracerPlugin,
} from '@gateway/plugin';
import { context as contexts, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  ExportResultCode,
  hrTimeToMicroseconds,
  W3CTraceContextPropagator,
} from '@opentelemetry/core';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  type ReadableSpan,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';

/** The settings in `settings.json`, by the part of their keys after `tracer.__NAME__.`. */
export interface Settings {
  readonly file: string;
  readonly sample_rate: number;
}

/**
 * An example that writes spans as lines in a file. It registers a provider with the single copy of
 * `@opentelemetry/api`, through which the gateway creates all its spans.
 */
const plugin: TracerPlugin<Settings> = { start };

export default plugin;

async function start(
  settings: Settings,
  context: TracerContext,
): Promise<{ close(): Promise<void> }> {
  refuseSecondTracer();
  const file = await open(settings.file, 'a').catch((cause: Error) => {
    throw new PluginError(`tracer.__NAME__.file cannot be written: ${cause.message}.`, {
      fix: 'Name a file in a folder that is there.',
      cause,
    });
  });
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({
      'service.name': context.serviceName,
      'service.version': context.serviceVersion,
      'deployment.environment.name': context.environment,
    }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(settings.sample_rate) }),
    spanProcessors: [new BatchSpanProcessor(fileExporter(file))],
  });
  trace.setGlobalTracerProvider(provider);
  contexts.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  return {
    close: async () => {
      await provider
        .shutdown()
        .catch((error: unknown) =>
          context.log?.warn({ tracer: '__NAME__', error }, 'spans were not written and are lost'),
        );
      await file.close();
      trace.disable();
      contexts.disable();
      propagation.disable();
    },
  };
}

/** Writes each finished span as a line of JSON. Replace it with an exporter for your backend. */
function fileExporter(file: FileHandle): SpanExporter {
  let written: Promise<void> = Promise.resolve();
  return {
    export(spans, done) {
      const text = spans.map((span) => `${JSON.stringify(lineOf(span))}\n`).join('');
      written = file.appendFile(text).then(
        () => done({ code: ExportResultCode.SUCCESS }),
        (error: Error) => done({ code: ExportResultCode.FAILED, error }),
      );
    },
    forceFlush: () => written,
    shutdown: () => written,
  };
}

function lineOf(span: ReadableSpan): object {
  const { traceId, spanId } = span.spanContext();
  return {
    name: span.name,
    traceId,
    spanId,
    parentSpanId: span.parentSpanContext?.spanId,
    startedUs: hrTimeToMicroseconds(span.startTime),
    durationUs: hrTimeToMicroseconds(span.duration),
    attributes: span.attributes,
    resource: span.resource.attributes,
  };
}
