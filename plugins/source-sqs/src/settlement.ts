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
  readonly #size: number;
  readonly #atOnce: number;
  #waiting: Entry[] = [];
  #sending = 0;
  #isScheduled = false;
  #onIdle: (() => void)[] = [];

  /** @param lost called with the number of entries by error code that could not be sent */
  constructor(
    send: (entries: Entry[]) => Promise<Failed[]>,
    lost: (messages: Record<string, number>) => void,
    { size = BATCH_SIZE, atOnce = BATCHES_AT_ONCE } = {},
  ) {
    this.#send = send;
    this.#lost = lost;
    this.#size = size;
    this.#atOnce = atOnce;
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
    if (this.#waiting.length > 0 || this.#sending > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  #flush(): void {
    while (this.#sending < this.#atOnce && this.#waiting.length > 0) {
      this.#sending++;
      void this.#sendBatch(this.#waiting.splice(0, this.#size)).finally(() => {
        this.#sending--;
        this.#flush();
      });
    }
    if (this.#waiting.length > 0 || this.#sending > 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** Retries entries that failed temporarily; those that failed for good (an expired receipt handle, a message that another reader has) are given up. */
  async #sendBatch(entries: Entry[]): Promise<void> {
    let left = entries;
    const lost: Record<string, number> = {};
    const giveUp = (code: string, count: number) => (lost[code] = (lost[code] ?? 0) + count);
    for (let attempt = 1; left.length > 0; attempt++) {
      let code: string;
      try {
        const failed = await this.#send(left);
        for (const { code } of failed.filter(({ isFinal }) => isFinal)) giveUp(code, 1);
        const again = failed.filter(({ isFinal }) => !isFinal);
        code = again[0]?.code ?? '';
        left = again.flatMap(({ index }) => left.slice(index, index + 1));
      } catch (error) {
        code = error instanceof Error ? error.name : String(error);
      }
      if (left.length > 0 && attempt === ATTEMPTS) {
        giveUp(code, left.length);
        break;
      }
      if (left.length > 0) await new Promise((resolve) => setTimeout(resolve, RETRY_MS * attempt));
    }
    if (Object.keys(lost).length > 0) this.#lost(lost);
  }
}
