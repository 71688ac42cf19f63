import * as api from '@opentelemetry/api';
import { suite } from 'uvu';
import {
  tracerConformance,
  tracerRules,
  type ReceivedSpan,
  type TracerRig,
} from '@gateway/plugin-conformance';
import plugin from '@gateway/tracer-apm';
import { apmServer, type ApmServer } from '../support/apm-server.js';
import { judged } from './judged.js';

type Settings = Parameters<typeof plugin.start>[0];

const conforms = suite('conformance/tracer-apm');

const rig: TracerRig<Settings> = {
  api,
  open: async () => {
    const server = await apmServer();
    return {
      settings: { agent_url: server.url },
      spans: () => spansOf(server),
      close: server.close,
    };
  },
};

// The agent keeps a request open for ten seconds, and the receiver reads it once it has ended.
judged(conforms, tracerRules, () => tracerConformance(plugin, rig, { withinMs: 15_000 }));

conforms.run();

function spansOf({ transactions, spans }: ApmServer): ReceivedSpan[] {
  // Unsampled spans are reported to the server, which drops them since version 8:
  // https://github.com/elastic/apm/blob/main/specs/agents/tracing-sampling.md
  const sampled = [...transactions, ...spans].filter((span) => span['sampled'] !== false);
  return sampled.map((span) => ({
    name: span.name,
    traceId: span.trace_id,
    spanId: span.id,
    ...(span.parent_id !== undefined && { parentSpanId: span.parent_id }),
    attributes: span.otel?.attributes ?? {},
  }));
}
