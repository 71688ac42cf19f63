import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ReceivedSpan, TracerRig } from '@gateway/plugin-conformance';
import * as api from '@opentelemetry/api';
import type { Settings } from './index.js';

/**
 * Opens the rig for the conformance suite, with a file per rule. For a backend, start a server that
 * supports its protocol.
 */
export default async function open(): Promise<TracerRig<Settings>> {
  const folder = await mkdtemp(join(tmpdir(), '__NAME__-'));
  let number = 0;
  return {
    api,
    open: async () => {
      const file = join(folder, `${++number}.jsonl`);
      return {
        settings: { file, sample_rate: 1 },
        spans: () => spansIn(file),
        close: () => Promise.resolve(),
      };
    },
    wrong: { settings: { file: join(folder, 'nowhere', 'spans.jsonl'), sample_rate: 1 } },
    close: () => rm(folder, { recursive: true }),
  };
}

async function spansIn(file: string): Promise<ReceivedSpan[]> {
  const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as ReceivedSpan);
}
