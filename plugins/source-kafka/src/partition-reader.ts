import { isUtf8 } from 'node:buffer';
import { acknowledges, SettledPrefix, type Handle, type Message } from '@gateway/plugin';
import type { IHeaders, KafkaMessage } from 'kafkajs';

const EMPTY = new Uint8Array(0);

/** What the readers of one member share: the member. */
export interface ReaderContext {
  readonly topic: string;
  readonly window: number;
  readonly handle: Handle;
  /** False while all partitions of the member together have as much in flight as its memory allows. */
  hasRoom(): boolean;
  /** A message is handed over. Call the returned function when it has settled. */
  opened(message: Message): () => void;
  /** Offsets without a record settled. */
  skipped(reader: PartitionReader): void;
  /** A message of this reader settled. */
  settled(reader: PartitionReader, isAcknowledged: boolean): void;
}

/**
 * Reads one partition for one assignment: a new assignment starts again at the committed offset, so it gets a new reader, and what the old one has in flight
 * no longer counts.
 */
export class PartitionReader {
  readonly partition: number;
  readonly #context: ReaderContext;
  readonly #prefix = new SettledPrefix<string>();
  /** Offset of the last record that was handed over or skipped. */
  #last: string | undefined;
  #committed: string | undefined;
  #hasRejected = false;
  #wake: (() => void) | undefined;

  constructor(partition: number, context: ReaderContext) {
    this.partition = partition;
    this.#context = context;
  }

  /** False while the window is full, and for good after a message settled with `later`: nothing behind it can be committed. */
  get hasRoom(): boolean {
    return !this.#hasRejected && this.#prefix.size < this.#context.window && this.#context.hasRoom();
  }

  /** The offset behind the last record that was handed over or skipped; undefined before the first. */
  get next(): bigint | undefined {
    return this.#last === undefined ? undefined : BigInt(this.#last) + 1n;
  }

  /** Resolves when there may be room, or when `wake` is called. */
  room(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Skips offsets up to this one, which hold no records: transaction markers and compacted records. They are committed, since unread they would be lag. */
  skipTo(offset: string): void {
    if (BigInt(offset) <= BigInt(this.#last ?? -1)) return;
    this.#last = offset;
    this.#prefix.open(offset)();
    this.#context.skipped(this);
  }

  /** Hands one record to core without waiting for it to settle. */
  handOver(record: KafkaMessage): void {
    this.#last = record.offset;
    const settle = this.#prefix.open(record.offset);
    const message = toMessage(this.#context.topic, this.partition, record);
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
      // The contract excludes this. Without an acknowledgement nothing is lost.
      () => settled(false),
    );
  }

  /** The end of the settled prefix, undefined when it is committed. */
  get uncommitted(): string | undefined {
    const { through } = this.#prefix;
    return through === this.#committed ? undefined : through;
  }

  committed(through: string): void {
    this.#committed = through;
  }
}

/** A tombstone (null value) has an empty body. */
function toMessage(topic: string, partition: number, record: KafkaMessage): Message {
  const timestamp = Number(record.timestamp);
  return {
    coordinates: `${topic}/${partition}/${record.offset}`,
    // Records of brokers before 0.10 have no timestamp: -1, or none.
    timestamp: timestamp > 0 ? timestamp : 0,
    // A copy: the record is a part of its batch, which would stay in memory as long as one message of it.
    body: record.value ? Uint8Array.prototype.slice.call(record.value) : EMPTY,
    headers: toHeaders(record.headers),
  };
}

/** Header values are bytes in Kafka: text is kept, anything else is omitted. Of a repeated header the last value counts. */
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
