import type { PluginLog } from '@gateway/plugin';
import { Batches } from './batches.js';
import { BATCH_SIZE, type Failed, type Queue } from './queue.js';

const BATCHES_AT_ONCE = 8;
const ATTEMPTS = 3;
const RETRY_MS = 250;

/** What is told to the queue about messages, in batches. Nothing here rejects: what fails in the end is logged, and comes back as a duplicate. */
export interface Settlement {
  /** The message was settled: the queue forgets it. */
  delete(receiptHandle: string): void;
  /** The message was not accepted: another reader gets it at once. */
  giveBack(receiptHandle: string): void;
  /** The message is not settled yet: it stays hidden for its full time from now. */
  extend(receiptHandle: string): void;
  /** Resolves when everything so far was told. */
  idle(): Promise<void>;
}

export function openSettlement(queue: Queue, log: PluginLog): Settlement {
  const deletes = new Batches<string>(
    (handles) =>
      persist(
        handles,
        (some) => queue.delete(some),
        log,
        'settled messages were not deleted from the queue and will come again as duplicates',
      ),
    { size: BATCH_SIZE, atOnce: BATCHES_AT_ONCE },
  );
  const visibilities = new Batches<{ receiptHandle: string; seconds: number }>(
    (entries) =>
      persist(entries, (some) => queue.hide(some), log, 'the visibility of messages was not changed; they come again when it has expired'),
    { size: BATCH_SIZE, atOnce: BATCHES_AT_ONCE },
  );
  return {
    delete: (receiptHandle) => deletes.add(receiptHandle),
    giveBack: (receiptHandle) => visibilities.add({ receiptHandle, seconds: 0 }),
    extend: (receiptHandle) => visibilities.add({ receiptHandle, seconds: queue.visibilitySeconds }),
    idle: async () => void (await Promise.all([deletes.idle(), visibilities.idle()])),
  };
}

/** Tries again what failed for the moment. What failed for good (a receipt handle that has expired, a message that another reader has) is left alone. */
async function persist<Entry>(
  entries: Entry[],
  send: (entries: Entry[]) => Promise<Failed[]>,
  log: PluginLog,
  sentence: string,
): Promise<void> {
  let left = entries;
  const lost = new Map<string, number>();
  for (let attempt = 1; left.length > 0; attempt++) {
    let code = '';
    try {
      const failed = await send(left);
      for (const { code } of failed.filter(({ final }) => final)) lost.set(code, (lost.get(code) ?? 0) + 1);
      const again = failed.filter(({ final }) => !final);
      code = again[0]?.code ?? '';
      left = again.flatMap(({ index }) => left.slice(index, index + 1));
    } catch (error) {
      code = error instanceof Error ? error.name : String(error);
    }
    if (left.length === 0) break;
    if (attempt === ATTEMPTS) {
      lost.set(code, (lost.get(code) ?? 0) + left.length);
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS * attempt));
  }
  if (lost.size > 0) log.warn({ messages: Object.fromEntries(lost) }, sentence);
}
