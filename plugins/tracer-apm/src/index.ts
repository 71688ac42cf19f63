import { PluginError, refuseSecondTracer, settles, type PluginLog, type TracerContext, type TracerPlugin } from '@gateway/plugin';
import { context as contexts, trace } from '@opentelemetry/api';
import apm from 'elastic-apm-node';
import { mendSpanStatus } from './span-status.js';

interface Settings {
  readonly agent_url: string;
  readonly secret_token?: string;
}

const CLOSE_MS = 4_000;

/** Sends spans to an APM server through the OpenTelemetry bridge of its agent. */
const plugin: TracerPlugin<Settings> = { start };

export default plugin;

function start(
  { agent_url, secret_token }: Settings,
  { serviceName, serviceVersion, environment, log }: TracerContext,
): Promise<{ close(): Promise<void> }> {
  if (!/^https?:\/\//.test(agent_url) || !URL.canParse(agent_url)) {
    throw new PluginError(`tracer.apm.agent_url is "${agent_url}", which is not the URL of an APM server.`, {
      fix: 'Set it to a URL such as http://apm:8200 (GATEWAY_APM_AGENT_URL, --apm-agent-url).',
    });
  }
  refuseSecondTracer();
  mendSpanStatus();
  apm.start({
    serverUrl: agent_url,
    ...(secret_token && { secretToken: secret_token }),
    serviceName,
    serviceVersion,
    environment,
    opentelemetryBridgeEnabled: true,
    // Spans come from the gateway itself; nothing of the process is patched, measured or listened to.
    instrument: false,
    instrumentIncomingHTTPRequests: false,
    captureExceptions: false,
    metricsInterval: '0s',
    centralConfig: false,
    // Otherwise the agent asks the metadata services of three clouds where it runs.
    cloudProvider: 'none',
    logger: loggerOf(log),
  });
  return Promise.resolve({
    close: async () => {
      await settles(new Promise<void>((resolve) => apm.flush(() => resolve())), CLOSE_MS);
      trace.disable();
      // Before `destroy`, after which the bridge has nothing left to disable.
      contexts.disable();
      await apm.destroy();
    },
  });
}

/** The agent formats its lines as pino does: an object and a sentence, or a sentence with its values. Only what went wrong is told. */
function loggerOf(log: PluginLog | undefined) {
  const nothing = () => {};
  const tell = (...words: unknown[]) => log?.warn({ tracer: 'apm' }, words.filter((word) => typeof word === 'string').join(' '));
  return { fatal: tell, error: tell, warn: tell, info: nothing, debug: nothing, trace: nothing };
}
