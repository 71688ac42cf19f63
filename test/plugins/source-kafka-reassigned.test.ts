import { EventEmitter } from 'node:events';
import { Kafka, type Consumer, type ConsumerConfig, type EachBatchHandler } from 'kafkajs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { GroupMember } from '#source-kafka/group-member';
import { SourceMemory } from '#source-kafka/memory';
import type { Message, Outcome } from '@gateway/plugin';
import { until } from '../support/until.js';
import { held } from './reading.js';

const reassigned = suite('plugins/source-kafka-reassigned');

/**
 * A member with a consumer driven by the test: known versions of kafkajs do not rejoin while a
 * handler runs, but nothing guarantees it.
 */
function driven(handle: (message: Message) => Promise<Outcome>) {
  const emitter = new EventEmitter();
  let eachBatch: EachBatchHandler = () => Promise.reject(new Error('it does not run'));
  const real = Kafka.prototype.consumer;
  Kafka.prototype.consumer = function (this: Kafka, config: ConsumerConfig): Consumer {
    const { events } = real.call(this, config);
    const driven: Partial<Consumer> = {
      events,
      on: ((name: string, listener: (event: unknown) => void) =>
        void emitter.on(name, listener)) as unknown as Consumer['on'],
      connect: () => Promise.resolve(),
      subscribe: () => Promise.resolve(),
      run: (options) => Promise.resolve(void (eachBatch = options!.eachBatch!)),
      pause: () => undefined,
      disconnect: () => Promise.resolve(),
    };
    return driven as Consumer;
  };
  const said = () => undefined;
  const context = {
    settings: {},
    sourceId: 's',
    signal: new AbortController().signal,
    window: 1,
    workers: 1,
    clientId: 'c',
    log: { debug: said, info: said, warn: said, error: said },
    report: said,
  };
  try {
    const member = new GroupMember(
      { brokers: ['127.0.0.1:1'], topic_name: 't' },
      handle,
      context,
      'c',
      {
        memory: new SourceMemory(),
        committed: new Map(),
        startsAt: new Map(),
        readTo: new Map(),
        topics: ['t'],
        ids: new Map(),
        before: { positions: new Map(), keptSinceMs: () => -Infinity },
        told: undefined,
        passedOver: () => {},
      },
    );
    return {
      member,
      assign: () =>
        emitter.emit('consumer.group_join', {
          payload: { memberId: 'm', memberAssignment: { t: [0] } },
        }),
      /** Passes these offsets to the handler; resolves with the offsets it has resolved. */
      batch: async (...offsets: string[]) => {
        const resolved: string[] = [];
        const messages = offsets.map((offset) => ({
          offset,
          value: Buffer.from(offset),
          timestamp: '1',
          key: null,
          headers: {},
        }));
        await eachBatch({
          batch: {
            topic: 't',
            partition: 0,
            fetchedOffset: offsets[0]!,
            highWatermark: '9',
            messages,
            lastOffset: () => offsets.at(-1)!,
          },
          resolveOffset: (offset: string) => void resolved.push(offset),
          heartbeat: () => Promise.resolve(),
          isRunning: () => true,
          commitOffsetsIfNecessary: () => Promise.resolve(),
        } as unknown as Parameters<EachBatchHandler>[0]);
        return resolved;
      },
    };
  } finally {
    Kafka.prototype.consumer = real;
  }
}

reassigned(
  'a batch that a reassignment ends moves no position: what it held is read again',
  async () => {
    const { handle, settle, waiting } = held();
    const { member, assign, batch } = driven(handle);
    try {
      await member.start();
      assign();
      const usual = batch('0');
      await until('the first message', () => waiting().length === 1);
      settle('0', 'accepted');
      assert.equal(await usual, ['0'], 'the position of the next fetch');
      const cut = batch('1', '2');
      await until('the window to be full', () => waiting().join() === '1');
      assign();
      assert.equal(await cut, [], 'the new assignment begins at the committed offset');
      const next = batch('1', '2');
      await until('it to be handed over again', () => waiting().join() === '1');
      settle('1', 'accepted');
      await until('what is behind it', () => waiting().join() === '2');
      settle('2', 'accepted');
      assert.equal(await next, ['2']);
    } finally {
      await member.close();
    }
  },
);

reassigned.run();
