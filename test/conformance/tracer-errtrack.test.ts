import * as api from '@opentelemetry/api';
import { suite } from 'uvu';
import {
  tracerConformance,
  tracerRules,
  type ReceivedSpan,
  type TracerRig,
} from '@gateway/plugin-conformance';
import plugin from '@gateway/tracer-errtrack';
import { sentry, type Sentry } from '../support/sentry.js';
import { judged } from './judged.js';

type Settings = Parameters<typeof plugin.start>[0];
type Fields = Readonly<Record<string, unknown>>;

const conforms = suite('conformance/tracer-errtrack');

const settings = { sample_rate: 1, debug: false };

const rig: TracerRig<Settings> = {
  api,
  open: async () => {
    const server = await sentry();
    return {
      settings: { ...settings, dsn: server.dsn },
      spans: () => spansOf(server),
      close: server.close,
    };
  },
};

judged(conforms, tracerRules, () => tracerConformance(plugin, rig));

conforms.run();

/**
 * Transactions with their spans:
 * https://develop.sentry.dev/sdk/data-model/event-payloads/transaction/
 */
function spansOf({ transactions }: Sentry): ReceivedSpan[] {
  return transactions.flatMap(({ transaction = '', contexts, spans = [] }) => [
    spanOf(transaction, contexts.trace),
    ...spans.map((span) => spanOf(String(span['description']), span)),
  ]);
}

function spanOf(name: string, fields: Fields): ReceivedSpan {
  const { trace_id, span_id, parent_span_id, data } = fields as Record<string, string> & {
    data?: Fields;
  };
  return {
    name,
    traceId: String(trace_id),
    spanId: String(span_id),
    ...(parent_span_id !== undefined && { parentSpanId: parent_span_id }),
    attributes: data ?? {},
  };
}
