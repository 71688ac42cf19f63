import { setTimeout as sleep } from 'node:timers/promises';
import type { Message as Received } from '@aws-sdk/client-sqs';
import {
  acknowledges,
  contentTypeOf,
  InFlight,
  type Handle,
  type Message,
  type SourceContext,
} from '@gateway/plugin';
import { BATCH_SIZE, type Queue } from './queue.js';
import type { Settlement } from './settlement.js';

/**
 * An empty response earlier than this means that the server does not support long polling. A pause
 * then avoids a busy loop on an empty queue.
 */
const SHORT_POLL_MS = 500;
const PAUSE_MS = 500;
/**
 * For the last poll after the abort: messages in the response of an aborted poll stay hidden until
 * their visibility timeout expires. On a busy queue, the poll returns and its messages are
 * released; on an idle one, it is aborted.
 */
const LAST_POLL_MS = 500;
/**
 * After a `later`, which means that the agent is draining. If the run does not end, the pause
 * prevents a busy loop of released messages.
 */
const REJECTED_PAUSE_MS = 1_000;

/** Hands messages over as the window permits, without waiting for earlier ones to settle. */
export class Poller {
  readonly #queue: Queue;
  readonly #settlement: Settlement;
  readonly #handle: Handle;
  readonly #window: number;
  /**
   * Free slots in the window required for a poll. Polling for single messages would take ten times
   * as many requests.
   */
  readonly #minRoom: number;
  readonly #inFlight: InFlight;
  /** By receipt handle, oldest first. */
  readonly #unsettled = new Map<string, { readonly close: () => void; extendAt: number }>();
  #onSettled: (() => void) | undefined;
  #hasRejected = false;
  #isClosed = false;

  constructor(queue: Queue, settlement: Settlement, handle: Handle, window: number) {
    this.#queue = queue;
    this.#settlement = settlement;
    this.#handle = handle;
    this.#window = window;
    this.#inFlight = new InFlight(window);
    this.#minRoom = Math.max(1, Math.min(BATCH_SIZE, Math.floor(window / 2)));
  }

  /** Rejects if a poll fails. */
  async poll(signal: AbortSignal): Promise<void> {
    const wake = () => this.#onSettled?.();
    signal.addEventListener('abort', wake);
    try {
      while (!signal.aborted) {
        if (this.#hasRoom) await this.#pollOnce(signal);
        else await this.#settled();
        if (this.#hasRejected) await pause(REJECTED_PAUSE_MS, signal);
        this.#hasRejected = false;
      }
    } finally {
      signal.removeEventListener('abort', wake);
    }
  }

  idle(): Promise<void> {
    return this.#inFlight.idle();
  }

  /** For messages that have used half of their visibility timeout. */
  extend(): void {
    const now = performance.now();
    for (const [receiptHandle, message] of this.#unsettled) {
      if (message.extendAt > now) continue;
      message.extendAt = this.#extendAt();
      this.#settlement.extend(receiptHandle);
    }
  }

  /** Messages that settle later are neither deleted from the queue nor released. */
  close(): void {
    this.#isClosed = true;
    for (const { close } of this.#unsettled.values()) close();
    this.#unsettled.clear();
  }

  get #hasRoom(): boolean {
    return this.#window - this.#inFlight.size >= this.#minRoom && this.#inFlight.hasRoom;
  }

  #settled(): Promise<void> {
    return new Promise((resolve) => (this.#onSettled = resolve));
  }

  #extendAt(): number {
    return performance.now() + this.#queue.visibilitySeconds * 500;
  }

  async #pollOnce(signal: AbortSignal): Promise<void> {
    const began = performance.now();
    const receive = (poll: AbortSignal) =>
      this.#queue.receive(this.#window - this.#inFlight.size, poll);
    const messages = await untilAborted(signal, receive, { graceMs: LAST_POLL_MS });
    for (const message of messages ?? []) this.#take(message, signal);
    if (messages?.length === 0 && performance.now() - began < SHORT_POLL_MS)
      await pause(PAUSE_MS, signal);
  }

  #take(received: Received, signal: AbortSignal): void {
    const { ReceiptHandle: receiptHandle = '' } = received;
    if (signal.aborted) return this.#settlement.release(receiptHandle);
    const message = toMessage(received);
    this.#unsettled.set(receiptHandle, {
      close: this.#inFlight.open(message),
      extendAt: this.#extendAt(),
    });
    this.#handle(message).then(
      (outcome) => this.#settle(receiptHandle, acknowledges(outcome)),
      // `handle` must not reject. If it does, release the message, so that it is not lost.
      () => this.#settle(receiptHandle, false),
    );
  }

  #settle(receiptHandle: string, acknowledged: boolean): void {
    if (this.#isClosed) return;
    this.#unsettled.get(receiptHandle)?.close();
    this.#unsettled.delete(receiptHandle);
    if (acknowledged) {
      this.#settlement.delete(receiptHandle);
    } else {
      this.#hasRejected = true;
      this.#settlement.release(receiptHandle);
    }
    this.#onSettled?.();
  }
}

/** Attributes become headers, binary ones as base64. */
function toMessage({ MessageId, Body = '', Attributes, MessageAttributes }: Received): Message {
  const headers: Record<string, string> = {};
  for (const [name, { StringValue, BinaryValue }] of Object.entries(MessageAttributes ?? {})) {
    if (StringValue !== undefined) headers[name] = StringValue;
    else if (BinaryValue !== undefined) headers[name] = Buffer.from(BinaryValue).toString('base64');
  }
  if (Attributes?.AWSTraceHeader !== undefined)
    headers['x-amzn-trace-id'] = Attributes.AWSTraceHeader;
  const { AWSTraceHeader: _, ...attributes } = Attributes ?? {};
  const { MessageGroupId: group, SentTimestamp: sentAt } = attributes;
  return {
    coordinates: MessageId ?? '',
    timestamp: Number(sentAt) || 0,
    body: Buffer.from(Body),
    headers,
    key: group === undefined ? null : Buffer.from(group),
    contentType: contentTypeOf(headers),
    attributes,
  };
}

/** The queue updates its count no more often, and every request is billed. */
const REPORT_EVERY_MS = 10_000;
const QUEUE = '';

/** Periodic if the context has `lag`. The returned function stops the reports and reports null. */
export function reportLag(
  queue: Pick<Queue, 'waiting'>,
  { lag, log }: Pick<SourceContext, 'lag' | 'log'>,
): () => Promise<void> {
  if (!lag) return () => Promise.resolve();
  const stopping = new AbortController();
  const { signal } = stopping;
  const reporting = (async () => {
    while (!signal.aborted) {
      try {
        const waiting = await untilAborted(signal, (request) => queue.waiting(request));
        if (waiting !== undefined && !signal.aborted) lag(QUEUE, waiting);
      } catch (error) {
        log.debug({ error }, 'could not fetch the number of waiting messages');
        lag(QUEUE, null);
      }
      await pause(REPORT_EVERY_MS, signal);
    }
  })();
  return async () => {
    stopping.abort();
    await reporting;
    lag(QUEUE, null);
  };
}

/**
 * The request has its own signal, which aborts `graceMs` after the given one, so that the
 * long-lived signal does not accumulate listeners. Resolves with undefined if the request fails
 * after the abort.
 */
async function untilAborted<T>(
  signal: AbortSignal,
  request: (signal: AbortSignal) => Promise<T>,
  { graceMs = 0 }: { graceMs?: number } = {},
): Promise<T | undefined> {
  const own = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const abort = () => (timer = setTimeout(() => own.abort(), graceMs));
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await request(own.signal);
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
    clearTimeout(timer);
  }
}

/** Also ends on abort. Never rejects. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
