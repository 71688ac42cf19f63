import { silentLog } from '@gateway/core/logging';
import type { Message } from '@gateway/plugin';
import type { Sandbox, TransformResult } from '@gateway/sandbox';
import type { ReadyMessage } from '@gateway/ingest/message/ready-message';
import { Transformer } from '@gateway/ingest/transform/transformer';
import type { IngestSource } from '@gateway/ingest/message/ingest-source';
import { transformAndParse } from './dry-run.js';

export interface Ran {
  readonly ready: ReadyMessage | 'dropped';
  /** The result of the function; undefined if it was not called. */
  readonly called: TransformResult | undefined;
}

/** Runs one message through the pipeline up to its commit. @throws SandboxError when functions cannot run: an agent retries without end */
export async function runOnce(
  source: IngestSource,
  message: Message,
  { sandbox, maxMessageBytes }: { readonly sandbox: Pick<Sandbox, 'run'>; readonly maxMessageBytes: number },
): Promise<Ran> {
  let called: TransformResult | undefined;
  let failure: unknown;
  const run: Sandbox['run'] = async (fn, payloads) => {
    try {
      const results = await sandbox.run(fn, payloads);
      called = results[0];
      return results;
    } catch (error) {
      failure = error;
      transformer.stop();
      throw error;
    }
  };
  const transformer = new Transformer({ sandbox: { run }, log: silentLog });
  try {
    return { ready: await transformAndParse(source, message, { transformer, maxMessageBytes }), called };
  } catch (error) {
    throw failure ?? error;
  }
}
