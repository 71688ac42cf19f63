import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ProjectQueues } from '#core/process/project-queues';

const queues = suite('core/process/project-queues');

interface Item {
  readonly projectId: string;
  readonly n: number;
}

/** Queues with so many items of each project, pushed project after project. */
function filled(counts: Readonly<Record<string, number>>): ProjectQueues<Item> {
  const it = new ProjectQueues<Item>();
  for (const [projectId, count] of Object.entries(counts)) for (let n = 0; n < count; n++) it.push({ projectId, n });
  return it;
}

const names = (items: readonly Item[]) => items.map(({ projectId, n }) => `${projectId}${n}`).join(' ');

queues('projects take turns, also from one call to the next, and each keeps its order', () => {
  const it = filled({ a: 5, b: 2, c: 1 });
  assert.is(names(it.take(2)), 'a0 b0');
  it.push({ projectId: 'd', n: 0 });
  assert.is(names(it.take(4)), 'c0 a1 b1 d0');
  assert.is(it.size, 3);
  assert.is(names(it.take(Infinity)), 'a2 a3 a4');
  assert.equal([it.size, it.take(1)], [0, []]);
});

queues('a project alone gets everything, in order, however long it waits', () => {
  const it = filled({ a: 3_000 });
  const taken: Item[] = [];
  for (let n = 3_000; it.size > 0; n++) {
    taken.push(...it.take(500));
    if (n < 3_100) it.push({ projectId: 'a', n });
  }
  assert.equal(
    taken.map(({ n }) => n),
    Array.from({ length: taken.length }, (_, n) => n),
  );
  assert.ok(taken.length > 3_000);
});

queues('what does not fit keeps its place while others go on', () => {
  const it = filled({ a: 3, b: 2, c: 3 });
  const small = ({ projectId }: Item) => projectId !== 'a';
  assert.is(names(it.take(4, small)), 'b0 c0 b1 c1');
  assert.is(names(it.take(10, small)), 'c2');
  assert.is(names(it.take(10, small)), '');
  assert.equal([it.size, [...it.projects]], [3, ['a']]);
  assert.is(names(it.take(10)), 'a0 a1 a2');
});

queues.run();
