// long
import { setTimeout as sleep } from 'node:timers/promises';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { processes } from '../support/processes.js';
import { production, subscribed, type Production } from '../support/production.js';
import { sqs, type Queues } from '../support/sqs.js';
import { until } from '../support/until.js';

// A source with a hostile function next to sources with good ones, through the whole gateway's
// command line.

const reliability = suite('reliability/hostile-functions');

const DEADLINE_MS = 200;
const PROCESSES = 2;
const GOOD_SOURCES = 3;
/**
 * Messages to each good source per round, and their interval: slow enough to leave one core of a
 * two-core machine idle. A function that loops occupies a core until its deadline.
 */
const ROUND = 60;
const EVERY_MS = 80;
const HOSTILE = 120;

/** Chosen by the message number. Overruns come first and are the most frequent. */
const KINDS = [
  'for (;;);',
  'const all = []; for (;;) all.push({ a: [1, 2, 3] });',
  'Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1);',
  'return { event_type: "a", data: { get a() { for (;;); } } };',
  '/^(a+)+$/.test("a".repeat(40) + "b");',
  'return { event_type: "a", data: { a: "x".repeat(4e6) } };',
  'return ({}).constructor.constructor("return process")().exit(1);',
  'Object.prototype.data = 1;',
];
const HOSTILE_FUNCTION = `function transform({ n }) {\n  switch (n % ${KINDS.length}) {\n${KINDS.map((kind, at) => `    case ${at}: { ${kind} }`).join('\n    break;\n')}\n  }\n}`;
const goodFunction = (source: number) =>
  `function transform({ n, at }) { return { event_type: 'order.created', data: { source: ${source}, n, at } }; }`;

interface Scene {
  readonly gateway: Production;
  readonly queues: Queues;
  readonly receiver: Endpoint;
  /** Sends a round to each good source. Returns the sorted latencies. */
  round(first: number): Promise<number[]>;
}

async function source(gateway: Production, queues: Queues, name: string, bodyFunction: string) {
  const queue = queues.queue();
  const pubSub = { type: 'sqs', workers: 1, sqs: queues.connection(queue.name) };
  const { uid } = await gateway.api('POST', '/sources', {
    name,
    type: 'pub_sub',
    pub_sub: pubSub,
    body_function: bodyFunction,
  });
  return { uid, queue };
}

async function scene(test: (scene: Scene) => Promise<void>): Promise<void> {
  const queues = await sqs();
  const receiver = await endpoint();
  const gateway = await production({
    settings: {
      transform: {
        deadline_ms: DEADLINE_MS,
        processes: PROCESSES,
        pause_overruns: 8,
        pause_seconds: 20,
      },
    },
  });
  try {
    await subscribed(gateway, receiver.url);
    const good: Awaited<ReturnType<typeof source>>[] = [];
    for (let k = 0; k < GOOD_SOURCES; k++)
      good.push(await source(gateway, queues, `good-${k}`, goodFunction(k)));
    let delivered = 0;
    const round = async (first: number) => {
      for (let n = first; n < first + ROUND; n++) {
        await Promise.all(
          good.map(({ queue }) => queues.send(queue, [JSON.stringify({ n, at: Date.now() })])),
        );
        await sleep(EVERY_MS);
      }
      const before = delivered;
      delivered += GOOD_SOURCES * ROUND;
      const isGood = ({ body }: Endpoint['requests'][number]) => body.includes('"source"');
      const arrived = await until(`${delivered} deliveries`, () => {
        const requests = receiver.requests.filter(isGood);
        return requests.length >= delivered && requests;
      });
      return arrived
        .slice(before)
        .map(
          ({ body, receivedAt }) => receivedAt - (JSON.parse(body.toString()) as { at: number }).at,
        )
        .sort((a, b) => a - b);
    };
    await test({ gateway, queues, receiver, round });
  } finally {
    await gateway.close();
    await receiver.close();
    await queues.close();
  }
}

const at = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;

/** Samples a process and its children until ended. Returns the maxima. */
function watched(pid: number): { end(): { rssMb: number; children: number; zombies: number } } {
  const most = { rssMb: 0, children: 0, zombies: 0 };
  const look = () => {
    const rss = /^VmRSS:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    const children = [...processes().values()].filter(({ parent }) => parent === pid);
    most.rssMb = Math.max(most.rssMb, Math.round(Number(rss) / 1024));
    most.children = Math.max(most.children, children.length);
    most.zombies = Math.max(most.zombies, children.filter(({ state }) => state === 'Z').length);
  };
  const timer = setInterval(look, 100);
  return {
    end: () => {
      clearInterval(timer);
      return most;
    },
  };
}

reliability(
  'a hostile function beside good ones: those deliver as quickly as before, it is quarantined with reasons and paused',
  () =>
    scene(async ({ gateway, queues, receiver, round }) => {
      const [agent] = gateway.agents;
      const { pid } = agent!.process;
      // All rounds have the same load next to the good sources; only the function differs.
      const hostile = await source(
        gateway,
        queues,
        'hostile',
        'function transform() { return null; }',
      );
      const sendThem = () =>
        queues.send(
          hostile.queue,
          Array.from({ length: HOSTILE }, (_, n) => JSON.stringify({ n })),
        );
      const seen = watched(pid);
      await round(0);
      await sendThem();
      const alone = await round(ROUND);
      await sendThem();
      const foreign = spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });
      const besideForeign = await round(2 * ROUND).finally(() => foreign.kill('SIGKILL'));

      await gateway.api('PUT', `/sources/${hostile.uid}`, { body_function: HOSTILE_FUNCTION });
      const quarantined = async () =>
        (
          await gateway.api<{ content: { code: string; reason: string }[] }>(
            'GET',
            '/quarantine?perPage=100',
          )
        ).content;
      // The old function drops messages until the agent has the new one. This kind is no overrun.
      const probes = await until(
        'the hostile function to be in use',
        async () => {
          await queues.send(hostile.queue, [JSON.stringify({ n: KINDS.length - 1 })]);
          await until('the probe to be over', () =>
            Object.values(queues.depth(hostile.queue)).every((count) => count === 0),
          );
          return (await quarantined()).length;
        },
        { everyMs: 200 },
      );
      await sendThem();
      const beside = await round(3 * ROUND);
      const shown = await until('the hostile source to be paused', async () => {
        const it = await gateway.api<{ paused_at: string | null; pause_reason: string }>(
          'GET',
          `/sources/${hostile.uid}`,
        );
        return it.paused_at !== null && it;
      });
      const { rssMb, children, zombies } = seen.end();
      const told = (sorted: readonly number[]) => `${at(sorted, 0.5)} and ${at(sorted, 0.99)} ms`;
      console.log(
        `  p50 and p99 of good sources: ${told(alone)} alone, ${told(besideForeign)} beside a program that loops, ${told(beside)} beside a hostile function`,
      );
      console.log(
        `  the agent had at most ${rssMb} MB, ${children} children, ${zombies} dead ones at a look`,
      );
      assert.ok(at(beside, 0.99) < 5 * at(alone, 0.99) + 2_000, 'neighbours wait');
      assert.match(
        shown.pause_reason,
        /^\d+ of \d+ calls of its transform function overran within \d+ s; the last one: /,
      );

      // The last message can still be on its way to the quarantine; one with a lost acknowledgement
      // is in both.
      const content = await until(
        'each message to be in quarantine or with its broker',
        async () => {
          const all = await quarantined();
          const { ready, inFlight, delayed } = queues.depth(hostile.queue);
          return ready + inFlight + delayed + all.length >= HOSTILE + probes && all;
        },
      );
      const codes = new Set(content.map(({ code }) => code));
      const expected = [
        'transform_timeout',
        'transform_memory',
        'transform_output_too_large',
        'transform_threw',
        'transform_crashed',
      ];
      for (const code of codes) assert.ok(expected.includes(code), code);
      assert.ok(codes.has('transform_timeout'));
      assert.ok(
        content.every(({ reason }) => /^\S.*\. \S.*\.$/.test(reason)),
        'each with a sentence',
      );
      assert.ok(content.length < HOSTILE / 2, `${content.length} were given to it`);

      assert.is(gateway.agents[0]?.process.pid, pid);
      assert.is(
        agent?.process.stderr.match(/is ready/g)?.length ??
          agent?.process.stdout.match(/is ready/g)?.length,
        1,
        'no restart',
      );
      assert.ok(rssMb < 300, `${rssMb} MB`);
      assert.ok(children <= PROCESSES + 2, `${children} children`);
      await until('its dead children to be gone', () =>
        [...processes().values()].every(({ parent, state }) => parent !== pid || state !== 'Z'),
      );
      await until(
        'both processes to be there',
        () => [...processes().values()].filter(({ parent }) => parent === pid).length === PROCESSES,
      );

      await gateway.api('PUT', `/sources/${hostile.uid}`, {
        body_function: goodFunction(GOOD_SOURCES),
      });
      const left = HOSTILE + probes - content.length;
      await until(
        `the ${left} messages that were left`,
        () => receiver.requests.length >= 4 * GOOD_SOURCES * ROUND + left,
      );
      await until('the queue to be empty', () => {
        const { ready, inFlight } = queues.depth(hostile.queue);
        return ready + inFlight === 0;
      });
    }),
);

reliability.run();
