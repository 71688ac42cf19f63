import { setTimeout as sleep } from 'node:timers/promises';
import type { Broker } from './brokers.js';
import type { Produced } from './journal.js';
import { textOf } from './messages.js';
import type { Random } from './random.js';

/** A broker and the index of the project that reads it. */
export interface Lane extends Pick<Produced, 'via' | 'project'> {
  readonly broker: Broker;
}

/** The average number of messages per invalid one. */
const POISONED_EVERY = 100;
const BATCH_MAX = 200;
const KAFKA_SHARE = 0.7;

/**
 * Writes numbered messages to all brokers in bursts, spread evenly over `overMs`, and catches up
 * as fast as possible after an outage. A message without an acknowledgement is not repeated: the
 * broker may have stored it.
 * @param produced receives each message as it is written
 * @param options.overMs duration without faults
 */
export async function produce(
  lanes: readonly Lane[],
  produced: Produced[],
  {
    messages,
    overMs,
    draw,
    signal,
  }: { messages: number; overMs: number; draw: Random; signal: AbortSignal },
): Promise<void> {
  const beganMs = performance.now();
  const isPoisoned = Array.from({ length: messages }, () => draw.next() * POISONED_EVERY < 1);
  const kafkaMessages = Math.round(messages * KAFKA_SHARE);
  let next = 0;

  const write = async ({ broker, ...lane }: Lane, count: number) => {
    let mayBeAway = false;
    for (let written = 0; written < count && !signal.aborted;) {
      const due =
        Math.min(count, Math.ceil((count * (performance.now() - beganMs)) / overMs)) - written;
      // After an outage, tries with a single message.
      const size = Math.min(due, mayBeAway ? 1 : BATCH_MAX);
      const isThere = await broker.connect().then(
        () => true,
        () => false,
      );
      if (size > 0 && isThere) {
        const batch = Array.from({ length: size }, () => {
          const n = next++;
          return { n, poisoned: isPoisoned[n] ?? false };
        });
        const taken = await broker.send(batch.map(textOf));
        batch.forEach((message, index) =>
          produced.push({ ...message, ...lane, acknowledgedByBroker: taken[index] ?? false }),
        );
        written += size;
        mayBeAway = taken.includes(false);
      }
      await sleep(isThere && !mayBeAway ? draw.between(20, 400) : 300);
    }
  };
  const counts = { kafka: kafkaMessages, sqs: messages - kafkaMessages };
  await Promise.all(
    lanes.map((lane) => {
      const projects = lanes.filter(({ via }) => via === lane.via).length;
      const upTo = (k: number) => Math.floor((counts[lane.via] * k) / projects);
      return write(lane, upTo(lane.project + 1) - upTo(lane.project));
    }),
  );
}
