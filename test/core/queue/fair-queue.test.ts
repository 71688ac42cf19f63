import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { FairQueue } from '#core/queue/fair-queue';

const queues = suite('core/queue/fair-queue');

interface Item {
  readonly owner: string;
  readonly n: number;
}

/** A queue with `counts` items per owner, pushed owner by owner. */
function filled(counts: Readonly<Record<string, number>>): FairQueue<Item> {
  const it = new FairQueue<Item>();
  for (const [owner, count] of Object.entries(counts))
    for (let n = 0; n < count; n++) it.push(owner, { owner, n });
  return it;
}

const names = (items: readonly Item[]) => items.map(({ owner, n }) => `${owner}${n}`).join(' ');

queues('owners take turns, also from one call to the next, and each keeps its order', () => {
  const it = filled({ a: 5, b: 2, c: 1 });
  assert.is(names(it.take(2)), 'a0 b0');
  it.push('d', { owner: 'd', n: 0 });
  assert.is(names(it.take(4)), 'c0 a1 b1 d0');
  assert.equal([it.size, it.sizeOf('a'), it.sizeOf('b')], [3, 3, 0]);
  assert.is(names(it.take(Infinity)), 'a2 a3 a4');
  assert.equal([it.size, it.take(1)], [0, []]);
});

queues('an owner alone gets everything, in order, however long it waits', () => {
  const it = filled({ a: 3_000 });
  const taken: Item[] = [];
  for (let n = 3_000; it.size > 0; n++) {
    taken.push(...it.take(500));
    if (n < 3_100) it.push('a', { owner: 'a', n });
  }
  assert.equal(
    taken.map(({ n }) => n),
    Array.from({ length: taken.length }, (_, n) => n),
  );
  assert.ok(taken.length > 3_000);
});

queues('what does not fit keeps its place while others go on', () => {
  const it = filled({ a: 3, b: 2, c: 3 });
  const small = ({ owner }: Item) => owner !== 'a';
  assert.is(names(it.take(4, small)), 'b0 c0 b1 c1');
  assert.is(names(it.take(10, small)), 'c2');
  assert.is(names(it.take(10, small)), '');
  assert.equal([it.size, it.sizeOf('a')], [3, 3]);
  assert.is(names(it.take(10, ({ n }) => (n === 2 ? 'full' : true))), 'a0 a1');
  assert.is(names(it.take(10)), 'a2');
});

queues(
  'nothing is lost or taken twice, and no owner gets more than one turn before another that waits',
  () => {
    const step = fc.oneof(fc.constantFrom('a', 'b', 'c', 'd'), fc.integer({ min: 1, max: 9 }));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const it = new FairQueue<Item>();
        const waiting = new Map<string, number[]>();
        for (const [n, owner] of steps.entries()) {
          if (typeof owner === 'string') {
            it.push(owner, { owner, n });
            waiting.set(owner, [...(waiting.get(owner) ?? []), n]);
            continue;
          }
          const most = owner;
          const before = [...waiting.values()].flat().length;
          const turns = new Map<string, number>();
          const taken = it.take(most);
          for (const { owner, n } of taken) {
            assert.is(waiting.get(owner)!.shift(), n);
            turns.set(owner, (turns.get(owner) ?? 0) + 1);
          }
          assert.equal([taken.length, it.size], [Math.min(most, before), before - taken.length]);
          const ofWaiting = [...waiting].flatMap(([owner, left]) =>
            left.length > 0 ? (turns.get(owner) ?? 0) : [],
          );
          assert.ok(Math.max(...turns.values()) - Math.min(Infinity, ...ofWaiting) <= 1, 'turns');
        }
      }),
    );
  },
);

queues.run();
