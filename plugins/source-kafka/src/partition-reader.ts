import { acknowledges, messageBytes, SettledPrefix, type Handle } from '@gateway/plugin';
import type { KafkaMessage } from 'kafkajs';
import { toMessage } from './message.js';

/** What the readers of one member share. */
export interface ReaderContext {
  readonly topic: string;
  readonly window: number;
  readonly handle: Handle;
  /** False while all partitions of the member together have as much in flight as its memory is meant for. */
  readonly hasRoom: () => boolean;
  /** A message of so many bytes was handed over. */
  opened(bytes: number): void;
  /** A message of so many bytes settled; `refused` when it is not to be acknowledged. */
  settled(refused: boolean, bytes: number): void;
}

/**
 * One partition, for as long as it is assigned to this member without interruption: a new assignment starts again at the committed offset,
 * so it gets a new reader, and what the old one has in flight no longer counts.
 */
export class Reader {
  readonly partition: number;
  readonly #context: ReaderContext;
  readonly #prefix = new SettledPrefix<string>();
  #committed: string | undefined;
  #refused = false;
  #wake: (() => void) | undefined;
  /** Offset of the last record that was handed over or passed by. */
  #last: string | undefined;
  /** The position that the group had committed, for as long as nothing was read. */
  #committedBefore: bigint | undefined;
  /** The offset behind the last record of the partition, as the broker said it last. */
  #end: bigint | undefined;

  constructor(partition: number, context: ReaderContext) {
    this.partition = partition;
    this.#context = context;
  }

  /** False while the window is full, and for good after a refusal: what comes behind a refused message cannot be acknowledged either. */
  get hasRoom(): boolean {
    return !this.#refused && this.#prefix.size < this.#context.window && this.#context.hasRoom();
  }

  /** Resolves when there may be room, or when `wake` is called. */
  room(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Records that are not read yet; undefined while that is not known. */
  get lag(): number | undefined {
    const next = this.#last === undefined ? this.#committedBefore : BigInt(this.#last) + 1n;
    if (next === undefined || this.#end === undefined) return undefined;
    return Number(this.#end > next ? this.#end - next : 0n);
  }

  /** Notes the end of the partition, of a fetch or asked for. */
  endsAt(offset: string): void {
    this.#end = BigInt(offset);
  }

  /** Notes where the group stands when nothing was read yet. */
  startsAt(offset: bigint): void {
    this.#committedBefore = offset;
  }

  /** Notes that there is nothing to hand over up to this offset, itself included: marks of transactions, and what was compacted. */
  passed(offset: string): void {
    this.#last = offset;
  }

  /** Hands one record to core and does not wait for it. */
  handOver(record: KafkaMessage): void {
    this.#last = record.offset;
    const settle = this.#prefix.open(record.offset);
    const message = toMessage(this.#context.topic, this.partition, record);
    const bytes = messageBytes(message);
    this.#context.opened(bytes);
    this.#context.handle(message).then(
      (outcome) => this.#settled(acknowledges(outcome) ? settle : undefined, bytes),
      // The contract says that this does not happen. Not acknowledging is the answer that loses nothing.
      () => this.#settled(undefined, bytes),
    );
  }

  /** The offset to commit, or undefined when it is committed already: the position after the settled prefix. */
  get dirty(): string | undefined {
    const { through } = this.#prefix;
    return through === this.#committed ? undefined : through;
  }

  /** `through` is what `dirty` said when the commit was sent. */
  committed(through: string): void {
    this.#committed = through;
  }

  #settled(settle: (() => void) | undefined, bytes: number): void {
    settle?.();
    if (!settle) this.#refused = true;
    this.#context.settled(!settle, bytes);
    if (this.#wake && this.hasRoom) this.wake();
  }
}
