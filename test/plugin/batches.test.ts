import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Batches } from '@gateway/plugin';
import { until, within } from '../support/until.js';

const batching = suite('plugin/batches');

batching(
  'a batch takes what has piled up while the others were under way, and never waits for more',
  async () => {
    const sent: number[][] = [];
    const release: (() => void)[] = [];
    const batches = new Batches<number>(
      (entries) => {
        sent.push(entries);
        return new Promise((resolve) => release.push(resolve));
      },
      { most: 10, atOnce: 8 },
    );
    const range = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, n) => from + n);
    for (const entry of range(0, 8)) {
      batches.add(entry);
      await until('a batch of its own', () => sent.length === entry + 1);
    }
    for (const entry of range(8, 31)) batches.add(entry);
    for (const count of [9, 10, 11]) {
      release.shift()?.();
      await until('the next batch', () => sent.length === count);
    }
    for (const answer of release) answer();
    await within(batches.idle(), 5_000, 'the batches to be sent');
    assert.equal(sent, [
      ...range(0, 8).map((entry) => [entry]),
      range(8, 18),
      range(18, 28),
      range(28, 31),
    ]);
  },
);

batching(
  'an entry waits its time for others, is in a batch once, and one that is added again waits longer',
  async () => {
    const sent: string[][] = [];
    const at: number[] = [];
    const batches: Batches<string> = new Batches(
      async (entries) => {
        at.push(performance.now());
        if (sent.push(entries) === 1) batches.add('failed', 100);
        return Promise.resolve();
      },
      { afterMs: 20 },
    );
    const began = performance.now();
    for (const entry of ['failed', 'other', 'failed']) batches.add(entry);
    await within(batches.idle(), 5_000, 'both batches');
    assert.equal(sent, [['failed', 'other'], ['failed']]);
    assert.ok(
      at[0]! - began >= 18 && at[1]! - at[0]! >= 98,
      `after ${at.map((time) => time - began).join(' and ')} ms`,
    );
  },
);

batching('flush does not wait, and close drops what waits', async () => {
  const sent: number[][] = [];
  const batches = new Batches<number>((entries) => Promise.resolve(void sent.push(entries)), {
    afterMs: 60_000,
  });
  batches.add(1);
  batches.flush();
  assert.equal(sent, [[1]]);
  batches.add(2);
  const idle = batches.idle();
  batches.close();
  batches.add(3);
  await within(idle, 5_000, 'nothing to wait');
  assert.equal(sent, [[1]]);
});

batching.run();
