import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Kv, Signal, SignalQueue } from '#store/kv/kv';
import { MemoryKv } from '#store/kv/memory-kv';
import { openKv } from '#store/kv/redis-kv';
import { proxy, type Proxy } from '../../support/proxy.js';
import { redis } from '../../support/redis.js';
import { until, within } from '../../support/until.js';
import { openRedisKv } from '../redis-kv.js';

const kv = suite('store/kv/kv');

/** One KV, used by two agents. */
interface Shared {
  readonly one: Kv;
  readonly other: Kv;
  /** Loses all data; only for a volatile KV. */
  readonly empty?: () => Promise<void>;
  close(): Promise<void>;
}

interface Implementation {
  readonly name: string;
  /** True if its data can be lost while agents use it. */
  readonly volatile: boolean;
  open(options: { takeOverMs?: number }): Promise<Shared>;
}

const quiet = () => undefined;

const implementations: readonly Implementation[] = [
  {
    name: 'in memory',
    volatile: false,
    open: (options) => {
      const only = new MemoryKv(options);
      return Promise.resolve({ one: only, other: only, close: () => only.close() });
    },
  },
  {
    name: 'Redis',
    volatile: true,
    open: async (options) => {
      const own = await redis();
      const [one, other] = [
        await openRedisKv(own.connection, options),
        await openRedisKv(own.connection, options),
      ];
      return {
        one,
        other,
        empty: async () => void (await own.client.flushdb()),
        close: async () => {
          await Promise.all([one.close(), other.close()]);
          await own.close();
        },
      };
    },
  },
];

const never = new AbortController().signal;

/** Pulls with a timeout; the signals are there or on their way. */
function pull(queue: SignalQueue, limit = 100, signal = never): Promise<Signal[]> {
  return within(queue.pull(limit, signal), 20_000, 'signals');
}

/** Waits until `count` signals remain: finished ones are acknowledged a moment later. */
async function left(queue: SignalQueue, count: number): Promise<void> {
  await until(`${count} signals`, async () => (await queue.depth()) === count);
}

const texts = (signals: readonly Signal[]) => signals.map(({ text }) => text);
const tickets = (signals: readonly Signal[]) => signals.map(({ ticket }) => ticket);

for (const { name, volatile, open } of implementations) {
  const each = (
    behaviour: string,
    test: (shared: Shared) => Promise<void>,
    options: { takeOverMs?: number } = {},
  ) =>
    kv(`${name}: ${behaviour}`, async () => {
      const shared = await open(options);
      try {
        await within(test(shared), 60_000, behaviour);
      } finally {
        await shared.close();
      }
    });

  each(
    'what is pushed is pulled in its order, by whoever pulls first, and is there until it is done',
    async ({ one, other }) => {
      await one.queue('create-event').push(['a', 'b', 'c']);
      assert.is(await other.queue('create-event').depth(), 3);
      const signals = await pull(other.queue('create-event'));
      assert.equal(texts(signals), ['a', 'b', 'c']);
      assert.is(new Set(tickets(signals)).size, 3);
      assert.is(await one.queue('create-event').depth(), 3);
      await other.queue('create-event').done(tickets(signals).slice(0, 2));
      await left(one.queue('create-event'), 1);
      await other.queue('create-event').done(tickets(signals).slice(2));
      await other.queue('create-event').done([]);
      await left(one.queue('create-event'), 0);
    },
  );

  each(
    'what waits and what was pulled and is not done are told apart, also where nobody has ever pulled or pushed',
    async ({ one, other }) => {
      const queue = one.queue('create-event');
      assert.equal(await queue.load(), { waiting: 0, pulled: 0 });
      await queue.push(['a', 'b', 'c', 'd']);
      assert.equal(await queue.load(), { waiting: 4, pulled: 0 });
      const signals = await pull(other.queue('create-event'), 3);
      assert.equal(await queue.load(), { waiting: 1, pulled: 3 });
      await queue.done(tickets(signals).slice(0, 2));
      await left(queue, 2);
      assert.equal(await queue.load(), { waiting: 1, pulled: 1 });
      assert.equal(await one.queue('match-subscriptions').load(), { waiting: 0, pulled: 0 });
    },
  );

  each(
    'a signal tells when it was pushed, also when it is taken over',
    async ({ one, other }) => {
      const before = Date.now();
      await one.queue('create-event').push(['a']);
      const after = Date.now();
      const [first] = await pull(one.queue('create-event'));
      const [again] = await pull(other.queue('create-event'));
      assert.ok(
        before <= first!.pushedAtMs && first!.pushedAtMs <= after,
        `${before} ${first!.pushedAtMs} ${after}`,
      );
      assert.equal(again, first);
    },
    { takeOverMs: 200 },
  );

  each('the two queues know nothing of each other', async ({ one }) => {
    await one.queue('create-event').push(['a']);
    await one.queue('match-subscriptions').push(['b', 'c']);
    assert.equal(texts(await pull(one.queue('match-subscriptions'))), ['b', 'c']);
    assert.equal(texts(await pull(one.queue('create-event'))), ['a']);
  });

  each('many texts are got together, in the order of their names', async ({ one, other }) => {
    const names = Array.from({ length: 2_500 }, (_, n) => `many:{p}:${n}`);
    for (const n of [0, 999, 1_000, 2_499])
      await one.set(names[n]!, `text ${n}`, { ttlMs: 60_000 });
    const found = (await other.getAll(names))
      .map((text, n) => (text === undefined ? [] : [[n, text] as const]))
      .flat();
    assert.equal(
      found,
      [0, 999, 1_000, 2_499].map((n) => [n, `text ${n}`]),
    );
    assert.equal(await other.getAll([]), []);
  });

  each('a text that is set is got by everybody until its time is over', async ({ one, other }) => {
    assert.is(await one.get('name'), undefined);
    await one.set('name', 'text 😀\n', { ttlMs: 60_000 });
    assert.is(await other.get('name'), 'text 😀\n');
    await other.set('name', 'newer', { ttlMs: 60_000 });
    assert.is(await one.get('name'), 'newer');
    assert.is(await one.get('other name'), undefined);
    await one.set('name', 'short', { ttlMs: 30 });
    await until('its time to be over', async () => (await other.get('name')) === undefined);
  });

  each(
    'a text that is only set when there is none leaves the one that is there, for its time',
    async ({ one, other }) => {
      await one.set('name', 'first', { ttlMs: 60_000, ifAbsent: true });
      await other.set('name', 'second', { ttlMs: 60_000, ifAbsent: true });
      assert.is(await one.get('name'), 'first');
      await one.set('short', 'first', { ttlMs: 30 });
      await until('it to be set', async () => {
        await one.set('short', 'second', { ttlMs: 60_000, ifAbsent: true });
        return (await other.get('short')) === 'second';
      });
    },
  );

  each('texts arrive as they are', async ({ one }) => {
    const odd = ['', ' ', 'a b', 'line\nbreak', '\0', '😀é', '\x1e\x1f', '*3\r\n$3\r\nDEL'];
    await one.queue('create-event').push(odd);
    assert.equal(texts(await pull(one.queue('create-event'))), odd);
  });

  each('no more is pulled than asked for', async ({ one }) => {
    const queue = one.queue('create-event');
    await queue.push(Array.from({ length: 25 }, (_, n) => String(n)));
    const sizes: number[] = [];
    for (let left = 25; left > 0; left -= sizes.at(-1)!) sizes.push((await pull(queue, 10)).length);
    assert.equal(sizes, [10, 10, 5]);
  });

  each('a pull waits for what another agent pushes', async ({ one, other }) => {
    const waiting = pull(one.queue('create-event'));
    await sleep(50);
    await other.queue('create-event').push(['late']);
    assert.equal(texts(await waiting), ['late']);
  });

  each('agents that pull at the same time share the signals, each once', async ({ one, other }) => {
    const all = Array.from({ length: 500 }, (_, n) => String(n));
    const found: string[] = [];
    const stop = new AbortController();
    const agent = async (queue: SignalQueue): Promise<void> => {
      while (!stop.signal.aborted) {
        const signals = await queue.pull(7, stop.signal);
        found.push(...texts(signals));
        await queue.done(tickets(signals));
      }
    };
    const agents = [agent(one.queue('create-event')), agent(other.queue('create-event'))];
    for (let n = 0; n < all.length; n += 50)
      await one.queue('create-event').push(all.slice(n, n + 50));
    await until('all signals', () => found.length >= all.length);
    stop.abort();
    await Promise.all(agents);
    assert.equal(found.sort(), all.sort());
    await left(one.queue('create-event'), 0);
  });

  each(
    'a pull that waits ends with an empty list when it is aborted, and the next one works',
    async ({ one }) => {
      const queue = one.queue('create-event');
      for (let n = 0; n < 3; n++) {
        const stop = new AbortController();
        const waiting = queue.pull(10, stop.signal);
        await sleep(20);
        stop.abort();
        assert.equal(await within(waiting, 2_000, 'the aborted pull'), []);
      }
      await queue.push(['after']);
      assert.equal(texts(await pull(queue)), ['after']);
    },
  );

  each('a pull that is aborted before it begins takes nothing', async ({ one }) => {
    const queue = one.queue('create-event');
    await queue.push(['a']);
    assert.equal(await within(queue.pull(10, AbortSignal.abort()), 2_000, 'the pull'), []);
    assert.equal(texts(await pull(queue)), ['a']);
  });

  each(
    'what was pulled and not done in time is pulled again, what is done is not',
    async ({ one, other }) => {
      await one.queue('create-event').push(['done', 'left']);
      const [done] = await pull(one.queue('create-event'));
      await one.queue('create-event').done([done!.ticket]);
      const again = await pull(other.queue('create-event'));
      assert.equal(texts(again), ['left']);
      await other.queue('create-event').done(tickets(again));
      await left(one.queue('create-event'), 0);
    },
    { takeOverMs: 300 },
  );

  each('what is done when KV is closed is acknowledged first', async ({ one, other }) => {
    await one.queue('create-event').push(['a', 'b']);
    await one.queue('create-event').done(tickets(await pull(one.queue('create-event'))));
    await one.close();
    assert.is(await other.queue('create-event').depth(), 0);
  });

  each(
    'what is pulled is held for a while: nobody else gets it meanwhile',
    async ({ one, other }) => {
      await one.queue('create-event').push(['a']);
      await pull(one.queue('create-event'));
      const stop = new AbortController();
      const waiting = other.queue('create-event').pull(10, stop.signal);
      await other.queue('create-event').push(['b']);
      assert.equal(texts(await within(waiting, 10_000, 'the second signal')), ['b']);
      stop.abort();
    },
  );

  each(
    'a bucket that two agents share gives its rate and no more than a second of it at once',
    async ({ one, other }) => {
      const rate = 200;
      const seconds = 2;
      let granted = 0;
      const startedAtMs = performance.now();
      const elapsed = () => (performance.now() - startedAtMs) / 1000;
      const agent = async (of: Kv): Promise<void> => {
        while (elapsed() < seconds) {
          const answer = await of.takeTokens('ingest', rate, 30);
          assert.ok(
            answer.granted >= 0 && answer.granted <= 30 && Number.isInteger(answer.granted),
          );
          assert.ok(answer.granted > 0 ? answer.waitMs === 0 : answer.waitMs > 0);
          granted += answer.granted;
          if (answer.granted === 0) await sleep(Math.min(answer.waitMs, 20));
        }
      };
      await Promise.all([agent(one), agent(one), agent(other)]);
      const most = rate * (1 + elapsed());
      assert.ok(granted <= most + 1, `${granted} granted, at most ${most} expected`);
      assert.ok(granted >= rate * seconds, `${granted} granted: the rate is not reached`);
    },
  );

  each('buckets of different names are different buckets', async ({ one }) => {
    assert.is((await one.takeTokens('a', 10, 10)).granted, 10);
    assert.is((await one.takeTokens('a', 10, 10)).granted, 0);
    assert.is((await one.takeTokens('b', 10, 25)).granted, 10);
  });

  each(
    'a bucket holds as much as it is told to, however slowly it fills',
    async ({ one, other }) => {
      assert.is((await one.takeTokens('slow', 0.5, 10, 3)).granted, 3);
      const { granted, waitMs } = await other.takeTokens('slow', 0.5, 1, 3);
      assert.is(granted, 0);
      assert.ok(waitMs > 1_500 && waitMs <= 2_000, `${waitMs} ms`);
      assert.is((await one.takeTokens('fast', 1_000_000, 10, 5)).granted, 5);
      await until(
        'it to be full again',
        async () => (await other.takeTokens('fast', 1_000_000, 10, 5)).granted === 5,
      );
    },
  );

  each(
    'a map is changed by whoever knows what stands there, and read whole by all',
    async ({ one, other }) => {
      const before = Date.now();
      const [mine, theirs] = [one.map('breakers'), other.map('breakers')];
      assert.is((await mine.all()).entries.size, 0);
      assert.equal(
        await mine.change([
          { field: 'a', from: undefined, to: '' },
          { field: 'b', from: 'nothing', to: 'x' },
        ]),
        [true, false],
      );
      assert.equal(
        await theirs.change([{ field: 'a', from: undefined, to: 'x' }]),
        [false],
        'an empty text is not nothing',
      );
      assert.equal(
        await theirs.change([
          { field: 'a', from: '', to: '=😀' },
          { field: 'a', from: '=😀', to: '😀=' },
        ]),
        [true, true],
      );
      const { nowMs, entries } = await mine.all();
      assert.equal([...entries], [['a', '😀=']]);
      assert.ok(Math.abs(nowMs - before) < 60_000, `${nowMs} and ${before}`);
      assert.equal(
        await mine.change([
          { field: 'a', from: '😀=', to: undefined },
          { field: 'a', from: undefined, to: undefined },
        ]),
        [true, true],
      );
      assert.is((await theirs.all()).entries.size, 0);
      assert.equal(await mine.change([]), []);
    },
  );

  each('of many who change one entry of a map at a time one succeeds', async ({ one, other }) => {
    const change = (kv: Kv, to: string) =>
      kv.map('breakers').change([{ field: 'e', from: undefined, to }]);
    const made = await Promise.all(
      Array.from({ length: 20 }, (_, n) => change(n % 2 ? one : other, String(n))),
    );
    assert.is(made.flat().filter(Boolean).length, 1);
    const many = Array.from({ length: 1_200 }, (_, n) => ({
      field: `f${n}`,
      from: undefined,
      to: String(n),
    }));
    assert.is((await one.map('breakers').change(many)).filter(Boolean).length, 1_200);
    assert.is((await other.map('breakers').all()).entries.size, 1_201);
  });

  if (volatile)
    each(
      'KV that was emptied in between works on: pulls that wait, signals that were held, buckets',
      async ({ one, other, empty }) => {
        const queue = one.queue('create-event');
        await queue.push(['lost', 'lost too']);
        const held = await pull(queue, 1);
        await one.takeTokens('ingest', 10, 10);
        await empty!();
        await queue.done(tickets(held));
        assert.is(await queue.depth(), 0);
        assert.is((await one.takeTokens('ingest', 10, 10)).granted, 10);

        const waiting = pull(queue);
        await sleep(100);
        await empty!();
        await sleep(100);
        await other.queue('create-event').push(['new']);
        assert.equal(texts(await waiting), ['new']);
        await empty!();
        await other.queue('create-event').push(['newer']);
        assert.equal(texts(await pull(queue)), ['newer']);
      },
    );

  each('it answers a ping', async ({ one }) => {
    await one.ping();
  });
}

kv(
  'Redis: while it is away everything fails at once, and works again when it is back',
  async () => {
    await behindProxy(async (away, agent) => {
      const queue = agent.queue('create-event');
      away.cut();
      const commands = () => [
        agent.ping(),
        agent.takeTokens('ingest', 1, 1),
        queue.push(['a']),
        queue.depth(),
      ];
      await Promise.all(commands().map((command) => fails(command)));
      await fails(queue.pull(1, never), 20_000);
      away.restore();
      await until('Redis to answer again', () => agent.ping().then(() => true));
      await queue.push(['b']);
      assert.equal(texts(await until('a pull', () => pull(queue))), ['b']);
    });
  },
);

kv(
  'Redis: a network that loses its way is noticed, by commands and by pulls that wait',
  async () => {
    await behindProxy(async (away, agent) => {
      const queue = agent.queue('create-event');
      const waiting = queue.pull(1, never);
      await sleep(200);
      away.freeze();
      await Promise.all([
        fails(agent.takeTokens('ingest', 1, 1), 15_000),
        fails(queue.push(['a']), 15_000),
        fails(waiting, 25_000),
      ]);
      away.restore();
      await until('Redis to answer again', () => agent.ping().then(() => true));
      await queue.push(['b']);
      assert.equal(texts(await until('a pull', () => pull(queue))), ['b']);
    });
  },
);

kv('Redis: closing ends a pull that waits', async () => {
  await behindProxy(async (_, agent) => {
    const waiting = agent.queue('create-event').pull(1, never);
    await sleep(100);
    await agent.close();
    await fails(waiting);
  });
});

kv('in memory: of too many texts those stay that were used last', async () => {
  const memory = new MemoryKv();
  for (let n = 0; n < 10_000; n++) await memory.set(`n${n}`, 'x', { ttlMs: 60_000 });
  await memory.get('n0');
  await memory.set('one too many', 'x', { ttlMs: 60_000 });
  assert.equal(
    [await memory.get('n0'), await memory.get('n1'), await memory.get('n2')],
    ['x', undefined, 'x'],
  );
});

kv('a KV is opened as its settings say', async () => {
  const settings = { scheme: 'redis', host: '127.0.0.1', port: 1 };
  assert.instance(openKv({ ...settings, type: 'in-memory' }, quiet), MemoryKv);
  const problems: Error[] = [];
  const agent = openKv({ ...settings, type: 'redis' }, (error) => problems.push(error));
  await until('the problem to be told', () => problems.length > 0);
  await agent.close();
});

kv('Redis: a clock that was set back takes nothing from a bucket', async () => {
  const own = await redis();
  const agent = await openRedisKv(own.connection);
  try {
    await agent.takeTokens('ingest', 10, 7);
    await own.client.hincrbyfloat('gateway:rate:ingest', 'at', 3_600_000);
    assert.equal(await agent.takeTokens('ingest', 10, 3), { granted: 3, left: 0, waitMs: 0 });
    const { granted, waitMs } = await agent.takeTokens('ingest', 10, 3);
    assert.is(granted, 0);
    assert.ok(waitMs > 0 && waitMs <= 100, `${waitMs} ms`);
  } finally {
    await agent.close();
    await own.close();
  }
});

async function fails(promise: Promise<unknown>, withinMs = 10_000): Promise<void> {
  const settled = await within(
    promise.then(
      () => 'worked',
      () => 'failed',
    ),
    withinMs,
    'a failure',
  );
  assert.is(settled, 'failed');
}

async function behindProxy(test: (away: Proxy, agent: Kv) => Promise<void>): Promise<void> {
  const own = await redis();
  const away = await proxy({ port: own.connection.port });
  const agent = await openRedisKv(own.connection, { port: away.port });
  try {
    await test(away, agent);
  } finally {
    await agent.close();
    await away.close();
    await own.close();
  }
}

kv.run();
