import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { balancer, CHECK_EVERY_MS } from '../support/balancer.js';
import { endAll } from '../support/end-all.js';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { gateway as start, runGateway, type GatewayProcess } from '../support/gateway.js';
import type { KafkaBroker } from '../support/kafka.js';
import { freePort } from '../support/ports.js';
import { kafkaSource, production, subscribed, type Production } from '../support/production.js';
import { until } from '../support/until.js';

/** An installed version of the gateway. */
export interface Version {
  readonly bin: string;
  /**
   * Whether it knows `server.http.drain_delay_seconds`, and starts on a database with the migrations
   * of a newer version.
   */
  readonly isRolling: boolean;
}

/** The longest times of a part of the run without a stop of all processes, in milliseconds. */
export interface Waits {
  readonly part: 'up' | 'down';
  readonly post: number;
  readonly request: number;
  readonly delivery: number;
  /** Duration of a computation by its processor time: more than 1 if others use the processors. */
  readonly control: number;
}

interface Member {
  readonly kind: 'agent' | 'server';
  readonly port: number;
  process: GatewayProcess;
  version: Version;
}

const EVERY_MS = 20;

/**
 * Runs two agents and two servers of the version before behind a load balancer, upgrades and then
 * downgrades them by the steps of docs/guides/deploy.md while Kafka and HTTP bring events, and checks
 * that every message and post arrives once and that every post and request is answered with 2xx.
 * With `ofEach` 1 the other agent and server remain as they are.
 */
export async function upgradeAndBack(
  {
    before,
    next,
    ofEach = 2,
  }: { readonly before: Version; readonly next: Version; readonly ofEach?: 1 | 2 },
  broker: KafkaBroker,
): Promise<Waits[]> {
  const closing: (() => unknown)[] = [];
  try {
    const receiver = await endpoint();
    closing.push(() => receiver.close());
    const gateway = await production({
      agents: 2,
      bin: before.bin,
      migratedByBin: true,
      env: { GATEWAY_DRAIN_DELAY_SECONDS: String((4 * CHECK_EVERY_MS) / 1000) },
    });
    closing.push(() => gateway.close());
    const { folder, env } = gateway.run;
    const run = async (version: Version, kind: Member['kind'], port: number) => {
      const process = start([kind, '--port', String(port)], { folder, env, bin: version.bin });
      await process.healthy(port);
      return process;
    };
    const second = await freePort();
    const members: Member[] = [
      ...gateway.agents
        .splice(0)
        .map(({ process, port }) => ({ kind: 'agent' as const, process, port })),
      { kind: 'server' as const, process: gateway.server, port: gateway.serverPort },
      { kind: 'server' as const, process: await run(before, 'server', second), port: second },
    ].map((member) => ({ ...member, version: before }));
    closing.push(() => Promise.all(members.map(({ process }) => process.terminate())));
    const portsOf = (kind: Member['kind']) =>
      new Set(members.filter((it) => it.kind === kind).map(({ port }) => port));
    const pools = { agents: portsOf('agent'), servers: portsOf('server') };
    const balanced = await balancer(pools);
    closing.push(() => balanced.close());
    await subscribed(gateway, receiver.url);
    const load = await startLoad(gateway, broker, balanced.port);
    closing.push(() => load.stop());
    const flows = async () => {
      const from = receiver.requests.length;
      await receiver.received(from + 100);
    };
    await flows();

    const stop = async (member: Member) => {
      const pool = pools[`${member.kind}s`];
      if (!member.version.isRolling) {
        pool.delete(member.port);
        await load.settled();
      }
      assert.is((await member.process.terminate()).code, 0);
      return () => pool.add(member.port);
    };
    const replace = async (kind: Member['kind'], version: Version) => {
      for (const member of members.filter((it) => it.kind === kind).slice(0, ofEach)) {
        const admit = await stop(member);
        member.process = await run(version, kind, member.port);
        member.version = version;
        admit();
        await until('the balancer to find it', () => balanced.isHealthy(member.port));
      }
    };
    const migrate = async (version: Version, ...args: string[]) => {
      const { code, stderr, stdout } = await runGateway(['migrate', ...args], {
        folder,
        bin: version.bin,
      });
      assert.is(code, 0, stderr);
      return stdout.split('\n').filter((line) => line.startsWith('applied ')).length;
    };

    const up = load.measure('up');
    const applied = await migrate(next, 'up');
    await replace('agent', next);
    await replace('server', next);
    await flows();
    await up.end();

    const down = load.measure('down');
    const rollsBack = applied === 0 || before.isRolling;
    if (rollsBack) {
      await replace('server', before);
      await replace('agent', before);
    } else {
      // The version before starts only on a database without the new migrations.
      await load.pausePosts();
      for (const kind of ['server', 'agent'] as const)
        for (const member of members.filter((it) => it.kind === kind)) (await stop(member))();
      // Samples of the backlog were written by then, and nothing recreates them.
      await migrate(next, 'down', '--max', String(applied), '--drop-data');
      for (const member of members.toReversed().sort((a) => (a.kind === 'agent' ? -1 : 1))) {
        member.process = await run(before, member.kind, member.port);
        member.version = before;
      }
      await until('the balancer to find all', () =>
        members.every(({ port: it }) => balanced.isHealthy(it)),
      );
      load.resumePosts();
    }
    await flows();
    await down.end();
    const produced = await load.stop();
    await eachOnce(gateway, receiver, produced);
    assert.equal(load.refusals, []);
    return (rollsBack ? [up, down] : [up]).map(({ waits }) => waits(receiver));
  } finally {
    await endAll(closing);
  }
}

/** Computes for 200 ms of every second, and answers the time that it took by the time it used. */
const CONTROL = `
  let [wall, cpu] = [0, 0];
  setInterval(() => {
    const [from, used] = [performance.now(), process.cpuUsage()];
    let us = 0;
    while (us < 2e5) { const { user, system } = process.cpuUsage(used); us = user + system; }
    wall += performance.now() - from;
    cpu += us / 1e3;
  }, 1000);
  process.on('message', () => process.send(wall / cpu, () => process.exit()));
  process.on('disconnect', () => process.exit());
`;

function startControl() {
  const child = spawn(process.execPath, ['-e', CONTROL], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  child.unref();
  child.channel?.unref();
  return {
    end: async () => {
      const answer = once(child, 'message');
      child.send('end');
      const [ratio] = (await answer) as [number];
      await once(child, 'exit');
      return Math.round(ratio * 100) / 100;
    },
  };
}

async function startLoad(gateway: Production, broker: KafkaBroker, port: number) {
  const topic = await kafkaSource(gateway, broker, 2);
  const headers = { authorization: `Bearer ${gateway.apiKey}`, 'content-type': 'application/json' };
  const base = `http://127.0.0.1:${port}/api/v1/projects/${gateway.projectId}`;
  const refusals: string[] = [];
  const durations: {
    readonly kind: 'post' | 'request';
    readonly at: number;
    readonly ms: number;
  }[] = [];
  const event = (way: string, n: number) =>
    JSON.stringify({ event_type: 'order.created', data: { way, n, at: Date.now() } });
  const ask = async (kind: 'post' | 'request', init: RequestInit, path: string) => {
    const at = Date.now();
    const what = `${kind} at ${new Date(at).toISOString()}`;
    try {
      const response = await fetch(`${base}${path}`, { headers, ...init });
      const text = await response.text();
      if (!response.ok) refusals.push(`${what}: ${response.status} ${text.slice(0, 200)}`);
    } catch (error) {
      refusals.push(`${what}: ${String((error as Error).cause ?? error)}`);
    }
    durations.push({ kind, at, ms: Date.now() - at });
  };
  const pending = new Set<Promise<void>>();
  const begin = (work: Promise<void>) => {
    pending.add(work);
    void work.finally(() => pending.delete(work));
  };
  let posts = 0;
  let isPaused = false;
  let stopped = false;
  const producing = (async () => {
    for (let n = 0; ; n++) {
      if (stopped) return n;
      if (!isPaused) {
        begin(ask('post', { method: 'POST', body: event('post', posts++) }, '/events'));
        if (n % 5 === 0) begin(ask('request', {}, '/endpoints'));
      }
      const values = [0, 1].map((partition) => ({
        partition,
        value: event(`partition ${partition}`, n),
      }));
      await Promise.all([broker.produce(topic, values), sleep(EVERY_MS)]);
    }
  })();
  const settled = () => Promise.all([...pending]);
  return {
    refusals,
    settled,
    pausePosts: () => ((isPaused = true), settled()),
    resumePosts: () => void (isPaused = false),
    /** Returns the number of messages and posts. */
    stop: async () => {
      stopped = true;
      const messages = 2 * (await producing);
      await settled();
      return messages + posts;
    },
    measure: (part: Waits['part']) => {
      const control = startControl();
      let ratio = 0;
      const from = Date.now();
      let to = Infinity;
      const longest = (of: readonly { readonly at: number; readonly ms: number }[]) =>
        Math.max(0, ...of.filter(({ at }) => at >= from && at <= to).map(({ ms }) => ms));
      return {
        end: async () => {
          to = Date.now();
          ratio = await control.end();
        },
        waits: ({ requests }: Endpoint): Waits => ({
          part,
          post: longest(durations.filter(({ kind }) => kind === 'post')),
          request: longest(durations.filter(({ kind }) => kind === 'request')),
          delivery: longest(
            requests.map(({ body, receivedAt }) => {
              const { at } = JSON.parse(body.toString()) as { at: number };
              return { at, ms: receivedAt - at };
            }),
          ),
          control: ratio,
        }),
      };
    },
  };
}

/** Waits until everything is delivered, and checks that it arrived once. */
async function eachOnce(gateway: Production, { requests }: Endpoint, total: number): Promise<void> {
  await until('every delivery to be recorded', async () => {
    const [row] = await gateway.database.rows<{ n: number }>(
      `select count(*)::int as n from event_deliveries where status = 'success'`,
    );
    return row!.n >= total;
  });
  const keys = requests.map(({ body }) => {
    const { way, n } = JSON.parse(body.toString()) as { way: string; n: number };
    return `${way} ${n}`;
  });
  assert.is(new Set(keys).size, total, 'nothing is lost');
  assert.is(keys.length, total, 'nothing arrives twice');
}
