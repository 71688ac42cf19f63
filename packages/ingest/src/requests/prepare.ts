import { silentLog } from '@gateway/core/logging';
import { LoopShares, TokenBuckets } from '@gateway/core/process';
import type { Message } from '@gateway/plugin';
import type { IngestSource } from '../message/ingest-source.js';
import type { SourceMessage } from '../message/source-message.js';
import { Pipeline } from '../pipeline.js';
import { Transformer, type TransformerOptions } from '../transform/transformer.js';

export type Prepare = (source: IngestSource, message: Message) => Promise<SourceMessage>;

/**
 * Opens the way of messages whose callers wait, up to the commit. It has no pace of its own: callers
 * are refused before it. A message that its function dropped has neither events nor a rejection.
 * Rejects if functions cannot be run.
 */
export function preparing({
  maxMessageBytes,
  log = silentLog,
  ...options
}: Pick<TransformerOptions, 'sandbox' | 'overruns' | 'pause'> & {
  readonly maxMessageBytes: number;
  readonly log?: TransformerOptions['log'];
}): Prepare {
  const pipeline = new Pipeline({
    transformer: new Transformer({ ...options, log, isAwaited: true }),
    eventWriter: { push: (message) => message.settle('later') },
    maxMessageBytes,
    throttle: { unlimited: true, take: (wanted) => Promise.resolve(wanted) },
    pace: new TokenBuckets(0),
    loopShares: new LoopShares(0),
  });
  return (source, message) => pipeline.prepare(source, message);
}
