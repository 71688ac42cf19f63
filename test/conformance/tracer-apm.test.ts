import * as api from '@opentelemetry/api';
import { suite } from 'uvu';
import { tracerConformance, tracerRules, type ReceivedSpan, type TracerRig } from '@gateway/plugin/conformance';
import plugin from '@gateway/tracer-apm';
import { receiving } from '../plugins/receiving.js';
import { judged } from './judged.js';

type Settings = Parameters<typeof plugin.start>[0];
type Fields = Readonly<Record<string, unknown>>;

const conforms = suite('conformance/tracer-apm');

const rig: TracerRig<Settings> = {
  api,
  open: async () => {
    const server = await receiving((path) => (path === '/' ? { status: 200, body: '{"version":"8.12.0"}' } : { status: 202 }));
    return {
      settings: { agent_url: server.url },
      spans: () => spansOf(server.bodies(/^\/intake\/v2\/events/)),
      close: server.close,
    };
  },
  away: { agent_url: 'http://127.0.0.1:1' },
  wrong: { settings: { agent_url: 'apm:8200', secret_token: 'hidden-token' }, secrets: ['hidden-token'] },
};

// The agent sends for ten seconds with one request, and the receiver reads that when it has ended.
judged(conforms, tracerRules, () => tracerConformance(plugin, rig, { withinMs: 15_000 }), [
  // It has no share of its own: what the sender of a trace decided is kept, and everything else is sent.
  'samples-nothing-at-zero',
  'samples-everything-at-one',
  'keeps-a-senders-yes',
]);

conforms.run();

/** The lines of the intake: https://www.elastic.co/guide/en/observability/current/apm-api-events.html */
function spansOf(text: string): ReceivedSpan[] {
  const events = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, Fields | undefined>);
  const about = events.find((event) => event['metadata'])?.['metadata']?.['service'] as Record<string, string> | undefined;
  return events.flatMap((event) => {
    const span = event['transaction'] ?? event['span'];
    // Told to the server, and dropped there since version 8: https://github.com/elastic/apm/blob/main/specs/agents/tracing-sampling.md
    if (!span || span['sampled'] === false) return [];
    const { name, id, trace_id, parent_id, otel } = span as Record<string, string> & { otel?: { attributes?: Fields } };
    return {
      name: String(name),
      traceId: String(trace_id),
      spanId: String(id),
      ...(parent_id !== undefined && { parentSpanId: parent_id }),
      attributes: otel?.attributes ?? {},
      service: { name: about?.['name'] ?? '', version: about?.['version'] ?? '', environment: about?.['environment'] ?? '' },
    };
  });
}
