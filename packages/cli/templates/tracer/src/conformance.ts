import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ReceivedSpan, TracerRig } from '@gateway/plugin-conformance';
import * as api from '@opentelemetry/api';
import type { Settings } from './index.js';

/** Opens the rig of the conformance suite: a file for each rule. A rig for a back end starts a server that speaks its protocol. */
export default async function open(): Promise<TracerRig<Settings>> {
  const folder = await mkdtemp(join(tmpdir(), '__NAME__-'));
  let number = 0;
  return {
    api,
    open: async () => {
      const file = join(folder, `${++number}.jsonl`);
      return { settings: { file, sample_rate: 1 }, spans: () => spansIn(file), close: () => Promise.resolve() };
    },
    sampled: (settings, rate) => ({ ...settings, sample_rate: rate }),
    wrong: { settings: { file: join(folder, 'nowhere', 'spans.jsonl'), sample_rate: 1 } },
    close: () => rm(folder, { recursive: true }),
  };
}

/** A line of the file, as `file-exporter.ts` writes it. */
interface Line {
  readonly name: string;
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent_span_id: string | null;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, string>>;
}

async function spansIn(file: string): Promise<ReceivedSpan[]> {
  const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    const { name, trace_id: traceId, span_id: spanId, parent_span_id: parent, attributes, resource } = JSON.parse(line) as Line;
    return { name, traceId, spanId, ...(parent === null ? {} : { parentSpanId: parent }), attributes, service: serviceOf(resource) };
  });
}

function serviceOf(resource: Line['resource']): NonNullable<ReceivedSpan['service']> {
  return {
    name: resource['service.name'] ?? '',
    version: resource['service.version'] ?? '',
    environment: resource['deployment.environment.name'] ?? '',
  };
}
