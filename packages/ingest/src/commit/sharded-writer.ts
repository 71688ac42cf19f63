import type { OngoingFailure } from '@gateway/core/process';
import type { ReadyMessage } from '../message/ready-message.js';
import type { ShardOf } from '../routing/shard-of.js';
import type { EventWriter } from './event-writer.js';

type Writer = Pick<EventWriter, 'push' | 'stop' | 'failing'>;

interface ShardedWriterOptions {
  readonly shardOf: ShardOf;
  /** Called once per shard, unless it rejects. */
  readonly writerOf: (shard: string) => Promise<Writer>;
}

/** A shard that fails or is slow delays only the messages of its projects. */
export class ShardedWriter implements Writer {
  readonly #writers = new Map<string, Writer>();
  readonly #opening = new Map<string, Promise<Writer>>();
  #isStopped = false;

  constructor(private readonly options: ShardedWriterOptions) {}

  get failing(): OngoingFailure | undefined {
    for (const { failing } of this.#writers.values()) if (failing) return failing;
    return undefined;
  }

  /**
   * If the shard is not known yet, the message is queued once the shard has been read; if that
   * fails, the message fails, or is settled as `later`.
   */
  push(message: ReadyMessage): void {
    const shard = this.options.shardOf(message.projectId);
    const writer = typeof shard === 'string' ? this.#writers.get(shard) : undefined;
    if (writer) writer.push(message);
    else void this.#pushLater(message, shard);
  }

  /** Uncommitted messages are settled as `later`. */
  stop(): void {
    this.#isStopped = true;
    for (const writer of this.#writers.values()) writer.stop();
  }

  async #pushLater(message: ReadyMessage, shard: string | Promise<string>): Promise<void> {
    try {
      (await this.#writerOf(await shard)).push(message);
    } catch (error) {
      if (message.failed) message.failed(error);
      else message.settle('later');
    }
  }

  #writerOf(shard: string): Promise<Writer> {
    const known = this.#opening.get(shard);
    if (known) return known;
    const opening = this.options.writerOf(shard).then((writer) => {
      this.#writers.set(shard, writer);
      if (this.#isStopped) writer.stop();
      return writer;
    });
    this.#opening.set(shard, opening);
    opening.catch(() => this.#opening.delete(shard));
    return opening;
  }
}
