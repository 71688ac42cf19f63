import { acknowledges, SettledPrefix, type Handle } from '@gateway/plugin';
import type { KafkaMessage } from 'kafkajs';
import { toMessage } from './message.js';

/** What the readers of one member share. */
export interface ReaderContext {
  readonly topic: string;
  readonly window: number;
  readonly handle: Handle;
  /** A message was handed over. */
  opened(): void;
  /** A message settled; `refused` when it is not to be acknowledged. */
  settled(refused: boolean): void;
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

  constructor(partition: number, context: ReaderContext) {
    this.partition = partition;
    this.#context = context;
  }

  /** False while the window is full, and for good after a refusal: what comes behind a refused message cannot be acknowledged either. */
  get hasRoom(): boolean {
    return !this.#refused && this.#prefix.size < this.#context.window;
  }

  /** Resolves when there may be room, or when `wake` is called. */
  room(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Hands one record to core and does not wait for it. */
  handOver(record: KafkaMessage): void {
    const settle = this.#prefix.open(record.offset);
    this.#context.opened();
    this.#context.handle(toMessage(this.#context.topic, this.partition, record)).then(
      (outcome) => this.#settled(acknowledges(outcome) ? settle : undefined),
      // The contract says that this does not happen. Not acknowledging is the answer that loses nothing.
      () => this.#settled(undefined),
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

  #settled(settle: (() => void) | undefined): void {
    settle?.();
    if (!settle) this.#refused = true;
    if (this.#wake && this.hasRoom) this.wake();
    this.#context.settled(!settle);
  }
}
