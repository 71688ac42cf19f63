import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { MemoryKv } from '#store/kv/memory-kv';
import { PARTITIONS_MAX, readSourceLag, writeSourceLag } from '#store/kv/source-lags';

const lags = suite('store/kv/source-lags');

const at = (partition: string, messages: number) => ({
  partition,
  messages,
  position: '5',
  end: String(5 + messages),
});
const write = (kv: MemoryKv, agentId: number, partitions: Parameters<typeof writeSourceLag>[2]) =>
  writeSourceLag(kv, { sourceId: 's', agentId }, partitions);

lags(
  'what agents that live have reported is put together, and the latest report of a partition counts',
  async () => {
    const kv = new MemoryKv();
    assert.is(await readSourceLag(kv, 's', [1, 2]), undefined);
    await write(kv, 1, [at('0', 7), at('1', 1)]);
    await new Promise((resolve) => setTimeout(resolve, 5));
    await write(kv, 2, [at('1', 2), at('2', 3)]);
    await write(kv, 3, [at('9', 100)]);
    const both = await readSourceLag(kv, 's', [1, 2]);
    assert.equal([both?.messages, both?.partitionCount], [12, 3]);
    assert.equal(both?.partitions, [at('0', 7), at('2', 3), at('1', 2)]);
    assert.ok(Math.abs(Date.now() - both!.reportedAtMs) < 5_000);
    assert.equal((await readSourceLag(kv, 's', [2]))?.partitions, [at('2', 3), at('1', 2)]);
    assert.is(await readSourceLag(kv, 'other', [1, 2, 3]), undefined);
  },
);

lags(
  'of very many partitions those with the largest lag are kept, and the sum is that of all',
  async () => {
    const kv = new MemoryKv();
    const many = Array.from({ length: PARTITIONS_MAX + 500 }, (_, n) => at(String(n), n));
    const sum = many.reduce((all, { messages }) => all + messages, 0);
    for (const agentId of [1, 2]) await write(kv, agentId, many);
    for (const agents of [[1], [1, 2]]) {
      const found = await readSourceLag(kv, 's', agents);
      assert.equal(
        [found?.partitions.length, found?.partitionCount, found?.messages],
        [PARTITIONS_MAX, PARTITIONS_MAX + 500, sum],
      );
      assert.equal(found?.partitions[0], many.at(-1));
    }
  },
);

lags.run();
