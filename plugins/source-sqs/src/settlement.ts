import { setTimeout as sleep } from 'node:timers/promises';
import type { PluginLog } from '@gateway/plugin';
import { BATCH_SIZE, type Failed, type Queue } from './queue.js';

const BATCHES_AT_ONCE = 8;
const ATTEMPTS = 3;
const RETRY_MS = 250;

export type Settlement = ReturnType<typeof openSettlement>;

/** Tells the queue, in batches, what became of messages. Nothing rejects: what fails in the end is logged, and its messages come again as duplicates. */
export function openSettlement(queue: Queue, log: PluginLog) {
  const deletes = new Batches<string>(
    (handles) => queue.delete(handles),
    (messages) => log.warn({ messages }, 'settled messages were not deleted from the queue and will come again as duplicates'),
  );
  const visibilities = new Batches<{ receiptHandle: string; seconds: number }>(
    (entries) => queue.hide(entries),
    (messages) => log.warn({ messages }, 'the visibility of messages was not changed; they come again when it has expired'),
  );
  return {
    /** The message settled: the queue deletes it. */
    delete: (receiptHandle: string) => deletes.add(receiptHandle),
    /** The message was not accepted: another reader gets it at once. */
    release: (receiptHandle: string) => visibilities.add({ receiptHandle, seconds: 0 }),
    /** The message has not settled yet: it stays hidden for the full time from now. */
    extend: (receiptHandle: string) => visibilities.add({ receiptHandle, seconds: queue.visibilitySeconds }),
    /** Resolves when every request so far is done. */
    idle: async () => void (await Promise.all([deletes.idle(), visibilities.idle()])),
  };
}

/**
 * Sends entries in batches, several at a time. A batch takes the entries that have piled up while the others were being sent and never waits for more, so an
 * idle queue is served at once and a busy one with full batches.
 */
export class Batches<Entry> {
  readonly #send: (entries: Entry[]) => Promise<Failed[]>;
  readonly #lost: (messages: Record<string, number>) => void;
  #waiting: Entry[] = [];
  #sending = 0;
  #isScheduled = false;
  #onIdle: (() => void) | undefined;

  /** @param lost called with the number of entries by error code that could not be sent */
  constructor(send: (entries: Entry[]) => Promise<Failed[]>, lost: (messages: Record<string, number>) => void) {
    this.#send = send;
    this.#lost = lost;
  }

  add(entry: Entry): void {
    this.#waiting.push(entry);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // Messages that settle together, in one commit, share a batch.
    setImmediate(() => {
      this.#isScheduled = false;
      this.#flush();
    });
  }

  /** Resolves when everything added so far was sent. */
  async idle(): Promise<void> {
    if (this.#waiting.length > 0 || this.#sending > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
  }

  #flush(): void {
    while (this.#sending < BATCHES_AT_ONCE && this.#waiting.length > 0) {
      this.#sending++;
      void this.#sendBatch(this.#waiting.splice(0, BATCH_SIZE)).finally(() => {
        this.#sending--;
        this.#flush();
      });
    }
    if (this.#waiting.length === 0 && this.#sending === 0) this.#onIdle?.();
  }

  /** Retries entries that failed temporarily; those that failed for good (an expired receipt handle, a message that another reader has) are given up. */
  async #sendBatch(entries: Entry[]): Promise<void> {
    let left = entries;
    let code = '';
    const lost: Record<string, number> = {};
    const giveUp = (why: string, count: number) => (lost[why] = (lost[why] ?? 0) + count);
    for (let attempt = 1; left.length > 0 && attempt <= ATTEMPTS; attempt++) {
      if (attempt > 1) await sleep(RETRY_MS * (attempt - 1));
      try {
        const failed = await this.#send(left);
        for (const { code: why } of failed.filter(({ isFinal }) => isFinal)) giveUp(why, 1);
        const again = failed.filter(({ isFinal }) => !isFinal);
        code = again[0]?.code ?? '';
        left = again.flatMap(({ index }) => left.slice(index, index + 1));
      } catch (error) {
        code = error instanceof Error ? error.name : String(error);
      }
    }
    if (left.length > 0) giveUp(code, left.length);
    if (Object.keys(lost).length > 0) this.#lost(lost);
  }
}
