import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { MemoryKv } from '#store/kv/memory-kv';
import { readSourceStates, writeSourceState } from '#store/kv/source-states';

const states = suite('store/kv/source-states');

states(
  'of a source that one agent cannot read that is told, with the largest lag that is known',
  async () => {
    const kv = new MemoryKv();
    const write = (agentId: number, state: Parameters<typeof writeSourceState>[2]) =>
      writeSourceState(kv, { projectId: 'p', sourceId: 's', agentId }, state);
    assert.is(
      (await readSourceStates(kv, { projectId: 'p', sourceIds: ['s'], agentIds: [1, 2] })).size,
      0,
    );
    await write(1, { state: 'reading', reason: null, sinceMs: 1, messages: 4 });
    await write(2, { state: 'connecting', reason: null, sinceMs: 1, messages: null });
    const read = async (agentIds: number[]) => {
      const found = await readSourceStates(kv, {
        projectId: 'p',
        sourceIds: ['other', 's'],
        agentIds,
      });
      assert.equal([...found.keys()], ['s']);
      const { state, reason, messages } = found.get('s')!;
      return [state, reason, messages];
    };
    assert.equal(await read([1, 2]), ['reading', null, 4]);
    assert.equal(await read([2]), ['connecting', null, null]);
    await write(2, { state: 'failing', reason: 'No.', sinceMs: 1, messages: null });
    assert.equal(await read([1, 2]), ['failing', 'No.', 4]);
    assert.equal(await read([1]), ['reading', null, 4], 'an agent that has died does not count');
  },
);

states(
  'the states of a project are asked for at once, and those of another project are not among them',
  async () => {
    const kv = new MemoryKv();
    const asked: number[] = [];
    const counting = Object.assign(Object.create(kv) as MemoryKv, {
      get: () => Promise.reject(new Error('one by one')),
      getAll: (names: readonly string[]) => (asked.push(names.length), kv.getAll(names)),
    });
    const reading = { state: 'reading', reason: null, sinceMs: 1, messages: 1 } as const;
    await writeSourceState(kv, { projectId: 'p', sourceId: 'a', agentId: 1 }, reading);
    await writeSourceState(
      kv,
      { projectId: 'p', sourceId: 'b', agentId: 2 },
      { ...reading, messages: 2 },
    );
    await writeSourceState(kv, { projectId: 'q', sourceId: 'c', agentId: 1 }, reading);
    const found = await readSourceStates(counting, {
      projectId: 'p',
      sourceIds: ['a', 'b', 'c'],
      agentIds: [1, 2],
    });
    assert.equal(
      [...found].map(([id, { messages }]) => [id, messages]),
      [
        ['a', 1],
        ['b', 2],
      ],
    );
    assert.equal(asked, [6]);
  },
);

states.run();
