import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ShardedWriter } from '#ingest/commit/sharded-writer';
import type { ReadyMessage } from '#ingest/message/ready-message';
import { until } from '../../support/until.js';

const sharded = suite('ingest/commit/sharded-writer');

interface Sent {
  readonly message: ReadyMessage;
  readonly ends: string[];
}

function messageOf(projectId: string, isAwaited = true): Sent {
  const ends: string[] = [];
  const message = {
    projectId,
    events: [],
    quarantined: null,
    settle: (outcome: string) => ends.push(outcome),
    ...(isAwaited && { failed: (error: Error) => ends.push(error.message) }),
  } as unknown as ReadyMessage;
  return { message, ends };
}

function scene(shardOf: (projectId: string) => string | Promise<string> = (id) => id) {
  const pushed: string[] = [];
  const stopped: string[] = [];
  const opened: string[] = [];
  const away = new Set<string>();
  const writer = new ShardedWriter({
    shardOf,
    async writerOf(shard) {
      opened.push(shard);
      if (away.has(shard)) throw new Error(`${shard} is away`);
      return {
        failing: undefined,
        push: ({ projectId }) => void pushed.push(`${projectId} to ${shard}`),
        stop: () => void stopped.push(shard),
      };
    },
  });
  return { writer, pushed, stopped, opened, away };
}

sharded('each message goes to the writer of its shard, which is opened once', async () => {
  const { writer, pushed, opened } = scene();
  for (const shard of ['one', 'two', 'one']) writer.push(messageOf(shard).message);
  await until('all messages to be pushed', () => pushed.length === 3);
  writer.push(messageOf('two').message);
  assert.equal(pushed.sort(), ['one to one', 'one to one', 'two to two', 'two to two']);
  assert.equal(opened, ['one', 'two']);
});

sharded('a project that is not in memory waits until its shard is read', async () => {
  const { writer, pushed } = scene((id) => Promise.resolve(`shard of ${id}`));
  writer.push(messageOf('new').message);
  await until('the message to be pushed', () => pushed.length > 0);
  assert.equal(pushed, ['new to shard of new']);
});

sharded('a shard that cannot be opened fails its own messages, and is tried again', async () => {
  const { writer, pushed, away } = scene();
  away.add('two');
  const [awaited, read] = [messageOf('two'), messageOf('two', false)];
  for (const { message } of [awaited, read, messageOf('one')]) writer.push(message);
  await until('the messages to fail', () => awaited.ends.length + read.ends.length === 2);
  assert.equal([awaited.ends, read.ends], [['two is away'], ['later']]);
  await until('the other message to be pushed', () => pushed.length === 1);
  away.clear();
  writer.push(messageOf('two').message);
  await until('the next message to be pushed', () => pushed.length === 2);
});

sharded('stopping ends all writers, also one that is being opened', async () => {
  const { writer, stopped, pushed } = scene();
  writer.push(messageOf('one').message);
  await until('the first writer to be open', () => pushed.length === 1);
  writer.push(messageOf('two').message);
  writer.stop();
  await until('both to stop', () => stopped.length === 2);
  assert.equal(stopped, ['one', 'two']);
});

sharded.run();
