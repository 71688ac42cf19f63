import { setTimeout as sleep } from 'node:timers/promises';
import { Batches, type PluginLog } from '@gateway/plugin';
import { BATCH_SIZE, type Failed, type Queue } from './queue.js';

const BATCHES_AT_ONCE = 8;
const ATTEMPTS = 3;
const RETRY_MS = 250;

export type Settlement = ReturnType<typeof openSettlement>;

/**
 * In batches. Never throws or rejects. Failures are logged, and their messages are redelivered as
 * duplicates.
 */
export function openSettlement(queue: Queue, log: PluginLog) {
  const batching = { most: BATCH_SIZE, atOnce: BATCHES_AT_ONCE };
  const deletes = new Batches<string>(async (handles) => {
    const lost = await sendAll(handles, queue.delete);
    if (lost)
      log.warn(
        { messages: lost },
        'could not delete settled messages from the queue; they will be redelivered as duplicates',
      );
  }, batching);
  const visibilities = new Batches<{ receiptHandle: string; seconds: number }>(async (entries) => {
    const lost = await sendAll(entries, queue.hide);
    if (lost)
      log.warn(
        { messages: lost },
        'could not change the visibility of messages; they will be redelivered when it expires',
      );
  }, batching);
  return {
    delete: (receiptHandle: string) => deletes.add(receiptHandle),
    /** Another reader can then receive the message. */
    release: (receiptHandle: string) => visibilities.add({ receiptHandle, seconds: 0 }),
    /** For the full visibility timeout from now. */
    extend: (receiptHandle: string) =>
      visibilities.add({ receiptHandle, seconds: queue.visibilitySeconds }),
    /** Resolves when all requests made so far are done. */
    idle: async () => void (await Promise.all([deletes.idle(), visibilities.idle()])),
  };
}

/**
 * One request. Retries temporary failures, and drops entries with permanent ones, such as an
 * expired handle or a message that another reader received.
 * @returns the number of dropped entries by error code, or undefined if there are none
 */
async function sendAll<Entry>(
  entries: Entry[],
  send: (entries: Entry[]) => Promise<Failed[]>,
): Promise<Record<string, number> | undefined> {
  let left = entries;
  let code = '';
  const lost: Record<string, number> = {};
  const giveUp = (why: string, count: number) => (lost[why] = (lost[why] ?? 0) + count);
  for (let attempt = 1; left.length > 0 && attempt <= ATTEMPTS; attempt++) {
    if (attempt > 1) await sleep(RETRY_MS * (attempt - 1));
    try {
      const failed = await send(left);
      for (const { code: why } of failed.filter(({ isFinal }) => isFinal)) giveUp(why, 1);
      const again = failed.filter(({ isFinal }) => !isFinal);
      code = again[0]?.code ?? '';
      left = again.flatMap(({ index }) => left.slice(index, index + 1));
    } catch (error) {
      code = error instanceof Error ? error.name : String(error);
    }
  }
  if (left.length > 0) giveUp(code, left.length);
  return Object.keys(lost).length > 0 ? lost : undefined;
}
