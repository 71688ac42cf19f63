import type { Message as Received } from '@aws-sdk/client-sqs';
import { acknowledges, IN_FLIGHT_BYTES, messageBytes, type Handle } from '@gateway/plugin';
import { cancellable, pause } from './cancellable.js';
import { toMessage } from './message.js';
import { BATCH_SIZE, type Queue } from './queue.js';
import type { Settlement } from './settlement.js';

/** A server that does not know long polls answers at once; then the pause is ours, so that an empty queue does not burn a core. */
const SHORT_POLL_MS = 500;
const PAUSE_MS = 500;
/**
 * What a queue has handed out to a poll that nobody waits for any more is hidden from all others until its visibility ends. So the last poll gets this long to
 * come back: that of a busy queue does, and its messages are given back; that of an idle one is cut.
 */
const LAST_POLL_MS = 500;
/** A message is refused when the agent drains, and then the end follows. Should it not, a message that is given back must not go round and round. */
const REFUSED_PAUSE_MS = 1_000;

/** One reader of the queue: polls, and hands over without waiting for what it handed over before, as far as the window lets it. */
export class Worker {
  readonly #queue: Queue;
  readonly #settlement: Settlement;
  readonly #handle: Handle;
  readonly #window: number;
  /** Room that a poll needs: asking for one message whenever one has settled would cost ten times the requests. */
  readonly #enough: number;
  /** The unsettled messages by their receipt handles; the oldest first. */
  readonly #open = new Map<string, { readonly bytes: number; extendAt: number }>();
  #openBytes = 0;
  #onSettled: (() => void) | undefined;
  #refused = false;
  #closed = false;

  constructor(queue: Queue, settlement: Settlement, handle: Handle, window: number) {
    this.#queue = queue;
    this.#settlement = settlement;
    this.#handle = handle;
    this.#window = window;
    this.#enough = Math.max(1, Math.min(BATCH_SIZE, Math.floor(window / 2)));
  }

  /** Polls until the signal aborts. Rejects with the error of a poll that failed. */
  async poll(signal: AbortSignal): Promise<void> {
    const wake = () => this.#onSettled?.();
    signal.addEventListener('abort', wake);
    try {
      while (!signal.aborted) {
        if (this.#hasRoom) await this.#pollOnce(signal);
        else await this.#settled();
        if (this.#refused) await pause(REFUSED_PAUSE_MS, signal);
        this.#refused = false;
      }
    } finally {
      signal.removeEventListener('abort', wake);
    }
  }

  /** Resolves when everything that was handed over has settled. */
  async idle(): Promise<void> {
    while (this.#open.size > 0) await this.#settled();
  }

  /** Keeps messages hidden that take longer than half of the time they are hidden for. */
  extend(): void {
    const now = Date.now();
    for (const [receiptHandle, message] of this.#open) {
      if (message.extendAt > now) continue;
      message.extendAt = this.#extendAt();
      this.#settlement.extend(receiptHandle);
    }
  }

  /** What settles after this is no longer told to the queue. */
  close(): void {
    this.#closed = true;
    this.#open.clear();
    this.#openBytes = 0;
    this.#onSettled?.();
  }

  get #hasRoom(): boolean {
    return this.#window - this.#open.size >= this.#enough && this.#openBytes < IN_FLIGHT_BYTES;
  }

  #settled(): Promise<void> {
    return new Promise((resolve) => (this.#onSettled = resolve));
  }

  #extendAt(): number {
    return Date.now() + this.#queue.visibilitySeconds * 500;
  }

  async #pollOnce(signal: AbortSignal): Promise<void> {
    const began = Date.now();
    const receive = (poll: AbortSignal) => this.#queue.receive(this.#window - this.#open.size, poll);
    const messages = await cancellable(signal, receive, { graceMs: LAST_POLL_MS });
    for (const message of messages ?? []) this.#take(message, signal);
    if (messages?.length === 0 && Date.now() - began < SHORT_POLL_MS) await pause(PAUSE_MS, signal);
  }

  #take(received: Received, signal: AbortSignal): void {
    const { ReceiptHandle: receiptHandle = '' } = received;
    if (signal.aborted) return this.#settlement.giveBack(receiptHandle);
    const message = toMessage(received);
    const bytes = messageBytes(message);
    this.#open.set(receiptHandle, { bytes, extendAt: this.#extendAt() });
    this.#openBytes += bytes;
    this.#handle(message).then(
      (outcome) => this.#settle(receiptHandle, acknowledges(outcome)),
      // The contract says that this does not happen. Giving back is the answer that loses nothing.
      () => this.#settle(receiptHandle, false),
    );
  }

  #settle(receiptHandle: string, acknowledged: boolean): void {
    if (this.#closed) return;
    this.#openBytes -= this.#open.get(receiptHandle)?.bytes ?? 0;
    this.#open.delete(receiptHandle);
    if (acknowledged) {
      this.#settlement.delete(receiptHandle);
    } else {
      this.#refused = true;
      this.#settlement.giveBack(receiptHandle);
    }
    this.#onSettled?.();
  }
}
