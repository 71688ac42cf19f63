import { isUtf8 } from 'node:buffer';
import {
  acknowledges,
  contentTypeOf,
  SettledPrefix,
  type Handle,
  type Message,
} from '@gateway/plugin';
import type { IHeaders, KafkaMessage } from 'kafkajs';
import { keyOf, type PartitionKey } from './connection.js';

const EMPTY = new Uint8Array(0);

export interface ReaderContext {
  readonly window: number;
  readonly handle: Handle;
  /** False while the messages in flight of all the member's partitions reach its limit. */
  hasRoom(): boolean;
  /** The message is in flight until the returned function is called. */
  opened(message: Message): () => void;
  /** Offsets without a record have settled. */
  skipped(reader: PartitionReader): void;
  settled(reader: PartitionReader, isAcknowledged: boolean): void;
}

/**
 * For one assignment. A new assignment starts at the committed offset with a new reader, and the
 * old reader's messages in flight no longer count toward commits.
 */
export class PartitionReader {
  readonly key: PartitionKey;
  readonly #context: ReaderContext;
  readonly #prefix = new SettledPrefix<string>();
  #last: string | undefined;
  #committed: string | undefined;
  #hasRejected = false;
  #wake: (() => void) | undefined;

  constructor(
    readonly topic: string,
    readonly partition: number,
    context: ReaderContext,
  ) {
    this.key = keyOf(topic, partition);
    this.#context = context;
  }

  /**
   * False while the window is full, and permanently after a `later`, because no later offset can be
   * committed.
   */
  get hasRoom(): boolean {
    return (
      !this.#hasRejected && this.#prefix.size < this.#context.window && this.#context.hasRoom()
    );
  }

  /** After the last record handed over or skipped. Undefined before the first. */
  get next(): bigint | undefined {
    return this.#last === undefined ? undefined : BigInt(this.#last) + 1n;
  }

  /** Resolves when the reader may accept another message, or on `wake`. */
  room(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  /**
   * Transaction markers and compaction leave offsets without records. They are committed, because
   * otherwise they would count as lag.
   */
  skipTo(offset: string): void {
    if (BigInt(offset) <= BigInt(this.#last ?? -1)) return;
    this.#last = offset;
    this.#prefix.open(offset)();
    this.#context.skipped(this);
  }

  handOver(record: KafkaMessage): void {
    this.#last = record.offset;
    const settle = this.#prefix.open(record.offset);
    const message = toMessage(this.topic, this.partition, record);
    const close = this.#context.opened(message);
    const settled = (isAcknowledged: boolean) => {
      if (isAcknowledged) settle();
      else this.#hasRejected = true;
      close();
      this.#context.settled(this, isAcknowledged);
      if (this.#wake && this.hasRoom) this.wake();
    };
    this.#context.handle(message).then(
      (outcome) => settled(acknowledges(outcome)),
      // `handle` must not reject. If it does, the message counts as unacknowledged, so it is not
      // lost.
      () => settled(false),
    );
  }

  /** The end of the settled prefix. Undefined if it is committed. */
  get uncommitted(): string | undefined {
    const { through } = this.#prefix;
    return through === this.#committed ? undefined : through;
  }

  committed(through: string): void {
    this.#committed = through;
  }
}

/** A tombstone, whose value is null, has an empty body. */
function toMessage(topic: string, partition: number, record: KafkaMessage): Message {
  const timestamp = Number(record.timestamp);
  const { offset, key, value } = record;
  const headers = toHeaders(record.headers);
  return {
    coordinates: `${topic}/${partition}/${offset}`,
    // Brokers before 0.10 send a timestamp of -1 or none.
    timestamp: timestamp > 0 ? timestamp : 0,
    // Copy the bytes: a slice would keep the whole batch in memory.
    body: value ? Uint8Array.prototype.slice.call(value) : EMPTY,
    headers,
    key: key && Uint8Array.prototype.slice.call(key),
    contentType: contentTypeOf(headers),
    attributes: { topic, partition: String(partition), offset },
  };
}

/** Only UTF-8 text. If a header is repeated, its last value wins. */
function toHeaders(headers: IHeaders | undefined): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const name in headers) {
    const given = headers[name];
    const value = Array.isArray(given) ? given.at(-1) : given;
    if (typeof value === 'string') texts[name] = value;
    else if (value && isUtf8(value)) texts[name] = value.toString('utf8');
  }
  return texts;
}
