import { mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Place, SourceRig } from '@gateway/plugin-conformance';
import type { Connection } from './index.js';

/** A folder per rule. For a broker, start it here or read its address from the environment. */
export default async function open(): Promise<SourceRig<Connection>> {
  const root = await mkdtemp(join(tmpdir(), '__NAME__-'));
  let number = 0;
  return {
    shape: 'queue',
    ordered: true,
    headers: false,
    settings: { poll_ms: 20 },
    open: async () =>
      place(await mkdtemp(join(root, 'messages-')), () => String(++number).padStart(9, '0')),
    reader: import.meta.resolve('./index.js'),
    missing: { connection: { folder: join(root, 'nowhere') } },
    close: () => rm(root, { recursive: true }),
  };
}

function place(folder: string, nextName: () => string): Place<Connection> {
  return {
    connection: { folder },
    send: async (messages) => {
      for (const { body } of messages) {
        const name = nextName();
        await writeFile(join(folder, `.${name}`), body);
        await rename(join(folder, `.${name}`), join(folder, name));
      }
    },
    unacknowledged: async () => (await readdir(folder)).length,
  };
}
