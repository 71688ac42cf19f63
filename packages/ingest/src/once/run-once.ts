import { silentLog } from '@gateway/core/logging';
import { LoopShares, ProjectPace } from '@gateway/core/process';
import type { Sandbox, TransformResult } from '@gateway/sandbox';
import type { EventTypeCatalogue } from '@gateway/store/config';
import type { IngestSource } from '../message/ingest-source.js';
import type { ReadyMessage } from '../message/ready-message.js';
import type { GivenMessage } from '../message/source-message.js';
import { unknownEventType } from '../validate/reject-codes.js';
import { Pipeline } from '../pipeline.js';
import { Transformer } from '../transform/transformer.js';

export interface RunOnceOptions {
  readonly sandbox: Pick<Sandbox, 'run'>;
  readonly maxMessageBytes: number;
  /** If omitted, no event type is rejected. */
  readonly catalogue?: Pick<EventTypeCatalogue, 'firstUnknown'> | undefined;
}

export interface Ran {
  readonly ready: ReadyMessage | 'dropped';
  /** Undefined if the function was not called. */
  readonly called: TransformResult | undefined;
}

/** Everything up to the commit. Rejects if functions cannot be run. */
export async function runOnce(
  source: IngestSource,
  message: GivenMessage,
  { sandbox, maxMessageBytes, catalogue }: RunOnceOptions,
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
  const ready = await new Promise<ReadyMessage | 'dropped'>((resolve, reject) => {
    const pipeline = new Pipeline({
      transformer,
      // The pace of this run is unlimited, so the commit has to count the message.
      eventWriter: { push: (message) => resolve(Object.assign(message, { counted: 0 })) },
      maxMessageBytes,
      throttle: { unlimited: true, take: (wanted) => Promise.resolve(wanted) },
      pace: new ProjectPace(0),
      loopShares: new LoopShares(0),
    });
    const settled = pipeline.handle(() => source)(message);
    void settled.then((outcome) =>
      outcome === 'dropped' ? resolve(outcome) : reject(failure as Error),
    );
  });
  if (ready !== 'dropped' && !ready.quarantined) {
    const types = ready.events.map(({ eventType }) => eventType);
    const unknown = await catalogue?.firstUnknown(source.projectId, types);
    if (unknown !== undefined) ready.reject(unknownEventType(unknown));
  }
  return { ready, called };
}
