import { PluginError, refuseSecondTracer, type PluginLog, type TracerContext, type TracerPlugin } from '@gateway/plugin';
import { context as contexts, propagation, trace } from '@opentelemetry/api';
import * as Sentry from '@sentry/node';
import { exceptions } from './exceptions.js';

interface Settings {
  readonly dsn: string;
  readonly sample_rate: number;
  readonly environment?: string;
  readonly debug: boolean;
}

// https://develop.sentry.dev/sdk/overview/#parsing-the-dsn
const DSN = /^https?:\/\/\w+(:\w*)?@[\w.:[\]-]+\/([\w./-]+\/)?\d+$/;
const CLOSE_MS = 4_000;
/** Requests that wait for an answer or a connection; what is beyond is dropped, not waited for. */
const REQUESTS_MAX = 4_096;
/** A server that refuses is told of this often. */
const WARN_EVERY_MS = 60_000;

/** Sends spans as transactions and the exceptions recorded on them as errors. */
const plugin: TracerPlugin<Settings> = { start };

export default plugin;

function start(settings: Settings, { serviceName, serviceVersion, environment, log }: TracerContext): Promise<{ close(): Promise<void> }> {
  // Sentry would print a wrong one, with the key in it.
  if (!DSN.test(settings.dsn)) throw notADsn();
  refuseSecondTracer();
  const client = Sentry.init({
    dsn: settings.dsn,
    tracesSampleRate: settings.sample_rate,
    environment: settings.environment ?? environment,
    debug: settings.debug,
    release: `gateway@${serviceVersion}`,
    initialScope: { tags: { service: serviceName } },
    // Spans come from the gateway itself; nothing of the process is patched or listened to.
    defaultIntegrations: false,
    integrations: [Sentry.linkedErrorsIntegration(), Sentry.nodeContextIntegration()],
    registerEsmLoaderHooks: false,
    // A burst of spans is a burst of requests; Sentry drops what is beyond 64 of them.
    transportOptions: { bufferSize: REQUESTS_MAX },
    // With a processor Sentry registers the full OpenTelemetry provider; its own small one forgets recorded exceptions.
    openTelemetrySpanProcessors: [exceptions],
  });
  if (!client?.getDsn()) {
    forget();
    throw notADsn();
  }
  if (log) warnOfRefusals(client, log);
  return Promise.resolve({
    close: async () => {
      await client.close(CLOSE_MS);
      forget();
    },
  });
}

function notADsn(): PluginError {
  return new PluginError('tracer.errtrack.dsn is not a DSN.', {
    fix: 'Copy it from the settings of the project: https://<key>@<host>/<project> (GATEWAY_ERRTRACK_DSN, --errtrack-dsn).',
  });
}

function forget(): void {
  Sentry.getCurrentScope().setClient(undefined);
  trace.disable();
  contexts.disable();
  propagation.disable();
}

function warnOfRefusals(client: NonNullable<ReturnType<typeof Sentry.init>>, log: PluginLog): void {
  let warnedAt = -Infinity;
  client.on('afterSendEvent', (_event, { statusCode }) => {
    if ((statusCode !== undefined && statusCode < 400) || Date.now() - warnedAt < WARN_EVERY_MS) return;
    warnedAt = Date.now();
    const host = client.getDsn()?.host;
    log.warn(
      { tracer: 'errtrack', status: statusCode },
      `${host} ${statusCode === undefined ? 'cannot be reached' : 'refuses spans and errors'}; they are lost`,
    );
  });
}
