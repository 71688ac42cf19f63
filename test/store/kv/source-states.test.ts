import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { MemoryKv } from '#store/kv/memory-kv';
import { readSourceStates, writeSourceState } from '#store/kv/source-states';

const states = suite('store/kv/source-states');

states('of a source that one agent cannot read that is told, with the largest lag that is known', async () => {
  const kv = new MemoryKv();
  const write = (agentId: number, state: Parameters<typeof writeSourceState>[2]) => writeSourceState(kv, { sourceId: 's', agentId }, state);
  assert.is((await readSourceStates(kv, ['s'], [1, 2])).size, 0);
  await write(1, { state: 'reading', reason: null, messages: 4 });
  await write(2, { state: 'connecting', reason: null, messages: null });
  const read = async (agents: number[]) => {
    const { state, reason, messages } = (await readSourceStates(kv, ['other', 's'], agents)).get('s')!;
    return [state, reason, messages];
  };
  assert.equal(await read([1, 2]), ['reading', null, 4]);
  assert.equal(await read([2]), ['connecting', null, null]);
  await write(2, { state: 'failing', reason: 'No.', messages: null });
  assert.equal(await read([1, 2]), ['failing', 'No.', 4]);
  assert.equal(await read([1]), ['reading', null, 4], 'an agent that has died does not count');
});

states.run();
