import {
  outages,
  PluginError,
  refuseSecondTracer,
  type PluginLog,
  type TracerContext,
  type TracerPlugin,
} from '@gateway/plugin';
import { context as contexts, trace } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  ParentBasedSampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
  type Sampler,
} from '@opentelemetry/sdk-trace-base';
import { debug } from '@sentry/core';
import * as Sentry from '@sentry/node';
import { SentrySpanProcessor } from '@sentry/opentelemetry';
import { exceptions } from './exceptions.js';

interface Settings {
  readonly dsn: string;
  readonly sample_rate: number;
  readonly environment?: string;
  readonly debug: boolean;
}

// Checked here, because Sentry's parser prints an invalid DSN:
// https://develop.sentry.dev/sdk/overview/#parsing-the-dsn
const DSN = /^https?:\/\/\w+(:\w*)?@(\[[\da-fA-F:.]+\]|[\w.-]+)(:\d+)?\/([\w./-]+\/)?\d+$/;
const CLOSE_MS = 4_000;
/** Waiting for a response or connection. Requests beyond it are dropped without blocking. */
const REQUESTS_MAX = 4_096;

/** Sends spans as transactions, and their exceptions as errors. */
const plugin: TracerPlugin<Settings> = { start };

export default plugin;

function start(settings: Settings, context: TracerContext): Promise<{ close(): Promise<void> }> {
  if (!DSN.test(settings.dsn)) {
    throw new PluginError('tracer.errtrack.dsn is not a DSN.', {
      fix: 'Copy it from the settings of the project: https://<key>@<host>/<project> (GATEWAY_ERRTRACK_DSN, --errtrack-dsn).',
    });
  }
  refuseSecondTracer();
  const stopDebugging = debugInto(settings.debug ? context.log : undefined);
  const client = clientOf(settings, context);
  reportOutages(client, context);
  // See https://docs.sentry.io/platforms/javascript/guides/node/opentelemetry/custom-setup/
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({
      'service.name': context.serviceName,
      'service.version': context.serviceVersion,
    }),
    sampler: samplerOf(settings.sample_rate),
    spanProcessors: [new SentrySpanProcessor({ client }), exceptions],
  });
  client.traceProvider = provider;
  trace.setGlobalTracerProvider(provider);
  contexts.setGlobalContextManager(new Sentry.SentryContextManager());
  return Promise.resolve({
    close: async () => {
      await client.close(CLOSE_MS);
      Sentry.getCurrentScope().setClient(undefined);
      trace.disable();
      contexts.disable();
      stopDebugging();
    },
  });
}

function clientOf(
  settings: Settings,
  { serviceName, serviceVersion, environment }: TracerContext,
): Sentry.NodeClient {
  const client = Sentry.init({
    dsn: settings.dsn,
    tracesSampleRate: settings.sample_rate,
    environment: settings.environment ?? environment,
    debug: settings.debug,
    release: `gateway@${serviceVersion}`,
    initialScope: { tags: { service: serviceName } },
    // The gateway creates the spans, so Sentry patches nothing.
    defaultIntegrations: false,
    integrations: [Sentry.linkedErrorsIntegration(), Sentry.nodeContextIntegration()],
    registerEsmLoaderHooks: false,
    skipOpenTelemetrySetup: true,
    // A burst of spans causes a burst of requests. By default, Sentry drops those beyond 64.
    transportOptions: { bufferSize: REQUESTS_MAX },
  });
  // `init` returns undefined only in browsers.
  return client!;
}

function reportOutages(client: Sentry.NodeClient, { log }: TracerContext): void {
  const host = client.getDsn()?.host ?? '';
  const outage = outages(log, { tracer: 'errtrack', host });
  client.on('afterSendEvent', (_event, { statusCode }) => {
    if (statusCode === undefined)
      outage.failed(`${host} cannot be reached, or does not take so many.`, 1);
    else if (statusCode >= 400)
      outage.failed(`${host} refuses spans and errors with ${statusCode}.`, 1);
    else outage.worked();
  });
}

/**
 * Keeps the sender's decision, and otherwise samples by trace id, so that processes with the same
 * rate keep the same traces. Sentry's sampler ignores a negative decision, drops every HTTP request
 * without a parent in its process, and adds to the outgoing `tracestate`.
 */
function samplerOf(rate: number): Sampler {
  const sampler = new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(rate) });
  return {
    shouldSample: (context, ...span) => {
      const result = sampler.shouldSample(context, ...span);
      const beginsHere = trace.getSpanContext(context) === undefined;
      if (!beginsHere || result.decision !== SamplingDecision.RECORD_AND_SAMPLED) return result;
      // Add the sample rate, because Sentry extrapolates totals from it.
      return { ...result, attributes: { [Sentry.SEMANTIC_ATTRIBUTE_SENTRY_SAMPLE_RATE]: rate } };
    },
    toString: () => `Share of traces: ${rate}`,
  };
}

/**
 * Sentry prints its debug output to standard output. The returned function ends the redirection.
 */
function debugInto(log: PluginLog | undefined): () => void {
  if (!log) return () => undefined;
  const before = { log: debug.log, warn: debug.warn, error: debug.error };
  const into =
    (level: 'info' | 'warn') =>
    (...words: unknown[]) => {
      if (debug.isEnabled())
        log[level]({ tracer: 'errtrack', debug: true }, words.map(textOf).join(' '));
    };
  Object.assign(debug, { log: into('info'), warn: into('warn'), error: into('warn') });
  return () => {
    debug.disable();
    Object.assign(debug, before);
  };
}

/**
 * For an error, keeps only the message, because other fields may contain the request with the key.
 */
function textOf(word: unknown): string {
  if (typeof word === 'string') return word;
  return word instanceof Error ? word.message : (JSON.stringify(word) ?? String(word));
}
