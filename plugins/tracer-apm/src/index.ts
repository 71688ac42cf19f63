import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import {
  outages,
  PluginError,
  refuseSecondTracer,
  settles,
  type PluginLog,
  type TracerContext,
  type TracerPlugin,
} from '@gateway/plugin';
import { context as contexts, diag, trace, type Span, type SpanStatus } from '@opentelemetry/api';
import apm from 'elastic-apm-node';

interface Settings {
  readonly agent_url: string;
  readonly secret_token?: string;
}

const RESPONSE = 'http.client.response.finish';
const CLOSE_MS = 4_000;
/**
 * Spans arrive in bursts when batches of deliveries end. A full queue drops spans and never blocks.
 */
const QUEUE_MAX = 16_384;

/** Uses the APM agent's OpenTelemetry bridge. */
const plugin: TracerPlugin<Settings> = { start };

export default plugin;

function start(settings: Settings, context: TracerContext): Promise<{ close(): Promise<void> }> {
  const { agent_url, secret_token } = settings;
  const server = serverOf(agent_url);
  refuseSecondTracer();
  patchSpanStatus();
  const outage = outages(context.log, { tracer: 'apm', server: server.origin });
  const recovery = serverRecovery(server, () => outage.worked());
  apm.start({
    serverUrl: agent_url,
    ...(secret_token && { secretToken: secret_token }),
    serviceName: context.serviceName,
    serviceVersion: context.serviceVersion,
    environment: context.environment,
    opentelemetryBridgeEnabled: true,
    // The gateway creates the spans, so the agent patches and measures nothing.
    instrument: false,
    instrumentIncomingHTTPRequests: false,
    captureExceptions: false,
    metricsInterval: '0s',
    centralConfig: false,
    maxQueueSize: QUEUE_MAX,
    // Avoids queries to the metadata services of three cloud providers.
    cloudProvider: 'none',
    logger: loggerOf(context.log, (reason) => {
      outage.failed(reason);
      recovery.watch();
    }),
  });
  apm.addMetadataFilter(withoutCommandLine);
  return Promise.resolve({
    close: async () => {
      await settles(new Promise<void>((resolve) => apm.flush(() => resolve())), CLOSE_MS);
      trace.disable();
      // Call this before `destroy`, which leaves no context manager to disable.
      contexts.disable();
      await apm.destroy();
      diag.disable();
      recovery.stop();
    },
  });
}

function serverOf(agentUrl: string): URL {
  const url = URL.canParse(agentUrl) ? new URL(agentUrl) : undefined;
  if (url && /^https?:$/.test(url.protocol) && /^https?:\/\//i.test(agentUrl)) return url;
  throw new PluginError(
    `tracer.apm.agent_url is "${agentUrl.replace(/\/\/[^/]*@/, '//')}", which is not the URL of an APM server.`,
    { fix: 'Set it to a URL such as http://apm:8200 (GATEWAY_APM_AGENT_URL, --apm-agent-url).' },
  );
}

/** The agent would send the command line, whose flags may be secrets. */
function withoutCommandLine(metadata: { process?: { argv?: unknown; title?: unknown } }): object {
  delete metadata.process?.argv;
  delete metadata.process?.title;
  return metadata;
}

/**
 * Only warnings and errors. Connection errors go to `failed`, so that they are logged once per
 * outage.
 */
function loggerOf(log: PluginLog | undefined, failed: (reason: string) => void) {
  const ignore = () => {};
  const warn = (...words: unknown[]) => {
    const sentence = words.filter((word) => typeof word === 'string').join(' ');
    if (sentence.startsWith('APM Server')) failed(sentence);
    else log?.warn({ tracer: 'apm' }, sentence);
  };
  return { fatal: warn, error: warn, warn, info: ignore, debug: ignore, trace: ignore };
}

let isPatched = false;

/**
 * The bridge's `setStatus` mistakes the status object for its code, so that failed spans would have
 * an unknown outcome: https://opentelemetry.io/docs/specs/otel/trace/api/#set-status
 */
function patchSpanStatus(): void {
  if (isPatched) return;
  isPatched = true;
  const { OTelSpan } = createRequire(import.meta.url)(
    'elastic-apm-node/lib/opentelemetry-bridge/OTelSpan',
  ) as {
    OTelSpan: { prototype: { setStatus(code: unknown): Span } };
  };
  const { setStatus } = OTelSpan.prototype;
  OTelSpan.prototype.setStatus = function (status: SpanStatus | number) {
    return setStatus.call(this, typeof status === 'object' ? status.code : status);
  };
}

/**
 * The agent reports only failures, so this watches for the next request that the server accepts.
 * Costs nothing until `watch` is called.
 */
function serverRecovery(server: URL, recovered: () => void): { watch(): void; stop(): void } {
  let isWatching = false;
  const stop = () => {
    if (isWatching) unsubscribe(RESPONSE, look);
    isWatching = false;
  };
  const look = (message: unknown) => {
    const { request, response } = message as { request: ClientRequest; response: IncomingMessage };
    if (
      request.getHeader('host') !== server.host ||
      !request.path.includes('/intake/') ||
      (response.statusCode ?? 500) >= 300
    )
      return;
    stop();
    recovered();
  };
  return {
    watch: () => {
      if (!isWatching) subscribe(RESPONSE, look);
      isWatching = true;
    },
    stop,
  };
}
