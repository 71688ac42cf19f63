import {
  PluginError,
  outages,
  refuseSecondTracer,
  settles,
  type Outages,
  type PluginLog,
  type TracerContext,
  type TracerPlugin,
} from '@gateway/plugin';
import { context as contexts, diag, trace } from '@opentelemetry/api';
import apm from 'elastic-apm-node';
import { onceTaken } from './once-taken.js';
import { mendSpanStatus } from './span-status.js';

interface Settings {
  readonly agent_url: string;
  readonly secret_token?: string;
}

const CLOSE_MS = 4_000;
/** Spans come in bursts, as batches of deliveries end. What does not fit is dropped, not waited for. */
const QUEUE_MAX = 16_384;

/** Sends spans to an APM server through the OpenTelemetry bridge of its agent. */
const plugin: TracerPlugin<Settings> = { start };

export default plugin;

function start(settings: Settings, context: TracerContext): Promise<{ close(): Promise<void> }> {
  const { agent_url, secret_token } = settings;
  const server = serverOf(agent_url);
  refuseSecondTracer();
  mendSpanStatus();
  const told = outages(context.log, { tracer: 'apm', server: server.origin });
  const taken = onceTaken(server, () => told.worked());
  apm.start({
    serverUrl: agent_url,
    ...(secret_token && { secretToken: secret_token }),
    serviceName: context.serviceName,
    serviceVersion: context.serviceVersion,
    environment: context.environment,
    opentelemetryBridgeEnabled: true,
    // Spans come from the gateway itself; nothing of the process is patched, measured or listened to.
    instrument: false,
    instrumentIncomingHTTPRequests: false,
    captureExceptions: false,
    metricsInterval: '0s',
    centralConfig: false,
    maxQueueSize: QUEUE_MAX,
    // Otherwise the agent asks the metadata services of three clouds where it runs.
    cloudProvider: 'none',
    logger: loggerOf(context.log, (reason) => {
      told.failed(reason);
      taken.watch();
    }),
  });
  apm.addMetadataFilter(withoutCommandLine);
  return Promise.resolve({
    close: async () => {
      await settles(new Promise<void>((resolve) => apm.flush(() => resolve())), CLOSE_MS);
      trace.disable();
      // Before `destroy`, after which the bridge has nothing left to disable.
      contexts.disable();
      await apm.destroy();
      diag.disable();
      taken.stop();
    },
  });
}

function serverOf(agentUrl: string): URL {
  const url = URL.canParse(agentUrl) ? new URL(agentUrl) : undefined;
  if (url && /^https?:$/.test(url.protocol) && /^https?:\/\//i.test(agentUrl)) return url;
  throw new PluginError(`tracer.apm.agent_url is "${agentUrl.replace(/\/\/[^/]*@/, '//')}", which is not the URL of an APM server.`, {
    fix: 'Set it to a URL such as http://apm:8200 (GATEWAY_APM_AGENT_URL, --apm-agent-url).',
  });
}

/** The agent would send how the process was started: flags may be secrets. */
function withoutCommandLine(metadata: { process?: { argv?: unknown; title?: unknown } }): object {
  delete metadata.process?.argv;
  delete metadata.process?.title;
  return metadata;
}

/**
 * The agent formats its lines as pino does: an object and a sentence, or a sentence with its values. Only what went wrong is told, and what concerns
 * the way to the server once per outage.
 */
function loggerOf(log: PluginLog | undefined, failed: Outages['failed']) {
  const nothing = () => {};
  const tell = (...words: unknown[]) => {
    const sentence = words.filter((word) => typeof word === 'string').join(' ');
    if (sentence.startsWith('APM Server')) failed(sentence);
    else log?.warn({ tracer: 'apm' }, sentence);
  };
  return { fatal: tell, error: tell, warn: tell, info: nothing, debug: nothing, trace: nothing };
}
