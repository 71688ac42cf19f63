import * as api from '@opentelemetry/api';
import { suite } from 'uvu';
import {
  tracerConformance,
  tracerRules,
  type Receiver,
  type TracerRig,
} from '@gateway/plugin-conformance';
import plugin from '@gateway/tracer-otel';
import { collector } from '../support/otlp.js';
import { judged } from './judged.js';

type Settings = Parameters<typeof plugin.start>[0];

const conforms = suite('conformance/tracer-otel');

const settings = { sample_rate: 1, insecure_skip_verify: false };

const rig: TracerRig<Settings> = {
  api,
  open: receiver,
};

judged(conforms, tracerRules, () => tracerConformance(plugin, rig));

conforms.run();

async function receiver(): Promise<Receiver<Settings>> {
  const to = await collector();
  return {
    settings: { ...settings, collector_url: `http://${to.address}` },
    spans: () =>
      to.spans.map(({ name, traceId, spanId, parentSpanId, attributes }) => ({
        name,
        traceId,
        spanId,
        ...(parentSpanId !== undefined && { parentSpanId }),
        attributes,
      })),
    close: () => Promise.resolve(to.close()),
  };
}
