import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Stage, type StageOptions } from '#core/queue/stage';
import { VirtualTime } from './virtual-time.js';

const stages = suite('core/queue/stage');

/**
 * The result of an item alone: `refused` is given up; `replaced` is refused until another item
 * replaces it.
 */
type Fate = 'fine' | 'refused' | 'replaced';

const item = fc.record({
  owner: fc.constantFrom('a', 'b', 'c'),
  size: fc.integer({ min: 1, max: 8 }),
  kind: fc.integer({ min: 0, max: 1 }),
  fate: fc.oneof(
    { arbitrary: fc.constant<Fate>('fine'), weight: 6 },
    fc.constantFrom<Fate>('refused', 'replaced'),
  ),
  /**
   * The time at which the gate opens for the item. If the gate does not announce it, the stage is
   * woken then.
   */
  opensAtMs: fc.oneof({ arbitrary: fc.constant(0), weight: 3 }, fc.integer({ min: 0, max: 120 })),
  saysWhen: fc.boolean(),
  pushedAtMs: fc.integer({ min: 0, max: 60 }),
});

const scenario = fc.record({
  concurrency: fc.integer({ min: 1, max: 3 }),
  capacity: fc.integer({ min: 1, max: 10 }),
  lingers: fc.boolean(),
  workMs: fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 5 }),
  outage: fc.option(fc.tuple(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 1, max: 200 }))),
  stopAtMs: fc.option(fc.integer({ min: 0, max: 150 })),
  items: fc.array(item, { maxLength: 40 }),
});

type ValueOf<Arbitrary> = Arbitrary extends fc.Arbitrary<infer Value> ? Value : never;
type Item = ValueOf<typeof item> & { readonly n: number };

class Refused extends Error {}
const SETTLED_ASKED_MS = 60.5;
const sorted = (numbers: readonly number[]) => [...numbers].sort((a, b) => a - b);

/** Runs a scenario in virtual time, and checks each batch. Returns the observations. */
async function play({
  concurrency,
  capacity,
  lingers,
  workMs,
  outage,
  stopAtMs,
  items: drawn,
}: ValueOf<typeof scenario>) {
  const time = new VirtualTime();
  const items: Item[] = drawn.map((one, n) => ({ ...one, n }));
  const began: Item[] = [];
  const numbers = {
    done: [] as number[],
    givenUp: [] as number[],
    left: [] as number[],
    ended: [] as number[],
  };
  let [underWay, calls, immediates, settledAtMs] = [0, 0, 0, Infinity];
  const isOut = () =>
    outage !== null && time.nowMs >= outage[0] && time.nowMs < outage[0] + outage[1];
  const isOpen = ({ opensAtMs }: Item) => time.nowMs >= opensAtMs;
  const replacements = new Set<Item>();
  const faults: unknown[] = [];
  const check = (batch: readonly Item[]) => {
    const sum = batch.reduce((all, { size }) => all + size, 0);
    assert.ok(sum <= capacity || batch.length === 1, `${sum} in a batch of ${batch.length}`);
    assert.is(new Set(batch.map(({ kind }) => kind)).size, 1, 'one kind in a batch');
    assert.ok(batch.every(isOpen), 'the gate is open');
    assert.ok(underWay <= concurrency, `${underWay} batches at once`);
  };
  const stage = new Stage<Item>({
    concurrency,
    capacity,
    sizeOf: ({ size }) => size,
    ownerOf: ({ owner }) => owner,
    ...(lingers ? { linger: { ms: 8, items: capacity } } : {}),
    together: (first, { kind }) => first.kind === kind,
    gate: (one) => (isOpen(one) ? 0 : one.saysWhen ? one.opensAtMs - time.nowMs : Infinity),
    async work(batch) {
      underWay++;
      try {
        check(batch);
      } catch (fault) {
        faults.push(fault);
      }
      for (const one of batch) if (!replacements.has(one) && !began.includes(one)) began.push(one);
      await time.sleep(workMs[calls++ % workMs.length]!);
      underWay--;
      if (isOut()) throw new Error('away');
      if (batch.some((one) => one.fate !== 'fine' && !replacements.has(one))) throw new Refused();
      numbers.done.push(...batch.map(({ n }) => n));
    },
    failed: () => undefined,
    backoffMs: (failures) => Math.min(50, 5 * failures),
    refuses: (error) => error instanceof Refused,
    replace(one) {
      if (one.fate === 'refused') return void numbers.givenUp.push(one.n);
      const other = { ...one };
      replacements.add(other);
      return other;
    },
    ended(batch, left) {
      numbers.ended.push(...batch.map(({ n }) => n));
      numbers.left.push(...left.map(({ n }) => n));
    },
  });
  time.begin();
  try {
    for (const one of items) {
      setTimeout(() => {
        stage.push(one);
        immediates = Math.max(immediates, time.immediates);
      }, one.pushedAtMs);
      if (!one.saysWhen) setTimeout(() => stage.wake(), one.opensAtMs);
    }
    if (stopAtMs !== null) setTimeout(() => stage.stop(), stopAtMs);
    setTimeout(() => void stage.settled().then(() => (settledAtMs = time.nowMs)), SETTLED_ASKED_MS);
    await time.run();
  } finally {
    time.end();
  }
  assert.equal(faults, []);
  return { ...numbers, items, began, stage, immediates, settledAtMs };
}

stages(
  'whatever fails, is refused, waits at a gate or is stopped, each item ends once, in the order of its owner and within the bounds',
  () =>
    fc.assert(
      fc.asyncProperty(scenario, async (given) => {
        const { items, began, done, givenUp, left, ended, stage, immediates, settledAtMs } =
          await play(given);
        const all = items.map(({ n }) => n);
        assert.equal(sorted(ended), all, 'each ends once');
        assert.equal(sorted([...done, ...givenUp, ...left]), all, 'each is done, given up or left');
        if (given.stopAtMs === null) {
          const refused = all.filter((n) => items[n]!.fate === 'refused');
          assert.equal([sorted(givenUp), left], [refused, []], 'only what is refused is not done');
          assert.ok(settledAtMs < Infinity, 'it settles');
        } else {
          assert.ok(
            settledAtMs <= Math.max(SETTLED_ASKED_MS, given.stopAtMs + 20),
            `settled at ${settledAtMs} ms`,
          );
        }
        for (const owner of ['a', 'b', 'c']) {
          const pushed = items
            .filter((one) => one.owner === owner)
            .sort((a, b) => a.pushedAtMs - b.pushedAtMs);
          const theirs = began.filter((one) => one.owner === owner);
          assert.equal(theirs, pushed.slice(0, theirs.length), `the order of ${owner}`);
        }
        assert.ok(immediates <= 1, `${immediates} turns of the event loop`);
        assert.equal([stage.isIdle, stage.failing], [true, undefined]);
      }),
      { numRuns: 300 },
    ),
);

interface Scene {
  readonly stage: Stage<number>;
  readonly time: VirtualTime;
  readonly batches: (readonly number[])[];
  /** Ends the oldest batch in progress. */
  end(error?: Error): void;
}

/** Runs a test with a stage of numbers in virtual time: batches of three, one at a time. */
async function scene(
  options: Partial<StageOptions<number>>,
  test: (scene: Scene) => Promise<void>,
): Promise<void> {
  const time = new VirtualTime();
  const batches: (readonly number[])[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const stage = new Stage<number>({
    concurrency: 1,
    capacity: 3,
    failed: () => undefined,
    backoffMs: () => 100,
    work: (batch) => {
      batches.push(batch);
      return new Promise((resolve, reject) =>
        ends.push((error) => (error ? reject(error) : resolve())),
      );
    },
    ...options,
  });
  time.begin();
  try {
    await test({ stage, time, batches, end: (error) => ends.shift()!(error) });
  } finally {
    time.end();
  }
}

stages(
  'what is pushed in one turn is taken together, owners in turn, and the end of a batch takes the next',
  () =>
    scene(
      { ownerOf: (n) => (n < 10 ? 'small' : 'large') },
      async ({ stage, time, batches, end }) => {
        for (const n of [10, 11, 12, 13, 1]) stage.push(n);
        assert.equal(batches, []);
        await time.run();
        assert.equal(batches, [[10, 1, 11]]);
        end();
        await time.run();
        assert.equal(batches, [
          [10, 1, 11],
          [12, 13],
        ]);
      },
    ),
);

stages('a gate that waits to be woken is not asked until then, and sets no timer', async () => {
  let [isOpen, asked] = [false, 0];
  const gate = () => (asked++, isOpen ? 0 : Infinity);
  await scene({ gate }, async ({ stage, time, batches }) => {
    stage.push(1);
    await time.run();
    assert.equal([asked, time.pending, batches], [1, 0, []]);
    isOpen = true;
    stage.wake();
    await time.run();
    assert.equal([asked, batches], [2, [[1]]]);
  });
});

stages('a gate that says when is asked again then, and at the end of a batch', async () => {
  const asked: [n: number, atMs: number][] = [];
  let nowMs = () => 0;
  const gate = (n: number) => (asked.push([n, nowMs()]), n === 1 ? Math.max(0, 50 - nowMs()) : 0);
  await scene({ gate, ownerOf: String }, async ({ stage, time, batches, end }) => {
    nowMs = () => time.nowMs;
    for (const n of [1, 2]) stage.push(n);
    await time.run();
    assert.equal([time.nowMs, batches], [0, [[2]]]);
    end();
    await time.run();
    assert.equal(batches, [[2], [1]]);
    assert.equal(
      asked.filter(([n]) => n === 1).map(([, atMs]) => atMs),
      [0, 0, 50],
    );
  });
});

stages(
  'a stage that lingers takes when the time is over, when enough wait, and at once while it settles',
  () =>
    scene(
      { linger: { ms: 8, items: 3 }, concurrency: 9 },
      async ({ stage, time, batches, end }) => {
        stage.push(1);
        await time.run();
        assert.equal([time.nowMs, batches], [8, [[1]]]);
        for (const n of [2, 3, 4]) stage.push(n);
        assert.equal([time.nowMs, batches.length], [8, 2]);
        stage.push(5);
        const settled = stage.settled();
        assert.equal([time.nowMs, batches.length], [8, 3]);
        for (let n = 0; n < 3; n++) end();
        await settled;
      },
    ),
);

stages(
  'it knows since when it fails, and for what; stop ends the wait for the next try',
  async () => {
    const left: number[] = [];
    await scene(
      { ended: (_, given) => void left.push(...given) },
      async ({ stage, time, batches, end }) => {
        stage.push(1);
        await time.run();
        end(new Error('first'));
        await time.run(() => batches.length === 2);
        const { since, error } = stage.failing!;
        assert.is((error as Error).message, 'first');
        end(new Error('second'));
        await time.run(() => (stage.failing!.error as Error).message === 'second');
        assert.is(stage.failing!.since, since);
        stage.push(2);
        stage.stop();
        stage.push(3);
        await stage.settled();
        assert.equal(
          [sorted(left), batches.length, stage.failing, time.pending],
          [[1, 2, 3], 2, undefined, 0],
        );
      },
    );
  },
);

stages('an item for which no replacement can be made is left, and costs no other', async () => {
  const told: unknown[] = [];
  const options: Partial<StageOptions<number>> = {
    work: (batch) => (batch.includes(2) ? Promise.reject(new Refused()) : Promise.resolve()),
    refuses: (error) => error instanceof Refused,
    replace: () => {
      throw new Error('defect');
    },
    failed: (error) => told.push((error as Error).message),
    ended: (batch, left) => told.push(batch, left),
  };
  await scene(options, async ({ stage, time }) => {
    for (const n of [1, 2, 3]) stage.push(n);
    await time.run();
    assert.equal(told, ['defect', [1, 2, 3], [2]]);
    assert.ok(stage.isIdle);
  });
});

stages.run();
