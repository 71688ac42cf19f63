import type { Message } from '@gateway/plugin';
import type { ReadyMessage } from '../commit/event-writer.js';
import type { IngestSource } from '../model/ingest-source.js';
import { Pipeline } from '../ingest/pipeline.js';
import type { Transformer } from '../ingest/transformer.js';

/**
 * What an agent would commit of one message: the first half of the way of a message, without its throttle, its metrics and the commit.
 *
 * @throws Error when the transformer was stopped before it decided
 */
export function decide(
  source: IngestSource,
  message: Message,
  { transformer, maxMessageBytes }: { transformer: Transformer; maxMessageBytes: number },
): Promise<ReadyMessage | 'dropped'> {
  return new Promise((resolve, reject) => {
    const throttle = { unlimited: true, take: (wanted: number) => Promise.resolve(wanted) };
    const pipeline = new Pipeline({ throttle, transformer, eventWriter: { push: resolve }, maxMessageBytes });
    const settled = pipeline.handle(() => source)(message);
    settled.then((outcome) => (outcome === 'dropped' ? resolve(outcome) : reject(new Error(`not decided: ${outcome}`))), reject);
  });
}
