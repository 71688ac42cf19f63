import { GatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import { Stage } from '@gateway/core/queue';
import { rejectsContent } from '@gateway/store/postgres';
import type { ReadyMessage } from '../message/ready-message.js';
import type { FormerShards } from './former-shards.js';
import { retrying } from './retrying.js';

interface FormerCheckOptions {
  readonly former: FormerShards | undefined;
  readonly batchSize: number;
  readonly concurrency: number;
  readonly log: Log;
  /** Receives each message that may be committed. */
  readonly checked: (message: ReadyMessage) => void;
}

interface WaitingMessage {
  readonly message: ReadyMessage;
  /** Whether the message was passed on, or has failed, although others of its batch wait. */
  isDone: boolean;
}

const RETRY_AFTER_SECONDS = 1;

/**
 * Asks former shards about messages before they join a commit, with a stage for each group of
 * shards: one that is away delays only the messages of projects that left it.
 */
export class FormerCheck {
  readonly #stages = new Map<string, Stage<WaitingMessage>>();
  #isStopped = false;

  constructor(private readonly options: FormerCheckOptions) {}

  /**
   * Passes the message on, at once or when its former shards have answered. A message with `failed`
   * fails if they do not: its caller must not wait for another shard.
   */
  push(message: ReadyMessage): void {
    const { former, checked } = this.options;
    const names = former?.mayHave(message) ?? [];
    if (!former || names.length === 0) return checked(message);
    const stage = this.#stageOf(former, names);
    if (message.failed && stage.isStuck) message.failed(away(names, stage.failing?.error));
    else stage.push({ message, isDone: false });
  }

  /** Settles waiting messages as `later`: the broker keeps them. */
  stop(): void {
    this.#isStopped = true;
    for (const stage of this.#stages.values()) stage.stop();
  }

  #stageOf(former: FormerShards, names: readonly string[]): Stage<WaitingMessage> {
    const { batchSize, concurrency, log } = this.options;
    const key = names.join();
    const known = this.#stages.get(key);
    if (known) return known;
    const stage = new Stage<WaitingMessage>({
      concurrency,
      capacity: batchSize,
      ownerOf: ({ message }) => message.projectId,
      work: (waiting) => this.#ask(former, names, waiting),
      failed: (error, { length: messages }, isFirst) =>
        log[isFirst ? 'warn' : 'debug'](
          { error, messages, shards: names },
          'Messages of projects that moved wait, because a former shard does not answer; it is asked again.',
        ),
      ...retrying(log),
      ended: (_, left) => {
        for (const { message, isDone } of left) if (!isDone) message.settle('later');
      },
    });
    if (this.#isStopped) stage.stop();
    this.#stages.set(key, stage);
    return stage;
  }

  async #ask(
    former: FormerShards,
    names: readonly string[],
    waiting: readonly WaitingMessage[],
  ): Promise<void> {
    const end = (items: readonly WaitingMessage[], pass: (message: ReadyMessage) => void) => {
      for (const item of items) {
        item.isDone = true;
        pass(item.message);
      }
    };
    const isWaiting = ({ isDone }: WaitingMessage) => !isDone;
    // A shard may be removed, or the project may move again, during the retries.
    const moved = ({ message }: WaitingMessage) => former.mayHave(message).join() !== names.join();
    end(waiting.filter(isWaiting).filter(moved), (message) => this.push(message));
    const asked = waiting.filter(isWaiting);
    if (asked.length === 0) return;
    try {
      await former.ask(
        names,
        asked.map(({ message }) => message),
      );
    } catch (error) {
      if (rejectsContent(error)) throw error;
      end(
        asked.filter(({ message }) => message.failed),
        (message) => message.failed!(away(names, error)),
      );
      if (asked.some(isWaiting)) throw error;
      return;
    }
    end(asked, this.options.checked);
  }
}

function away(names: readonly string[], cause: unknown): GatewayError<'shard_away'> {
  return new GatewayError(
    'shard_away',
    {
      shard: names.join(', '),
      state: 'does not say whether it has the event, because it is unavailable',
      outcome: 'nothing was stored',
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    },
    { cause },
  );
}
