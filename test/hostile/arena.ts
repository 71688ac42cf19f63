import { fork } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { kafka, type KafkaBroker } from '../support/kafka.js';
import { loopback } from '../support/ports.js';
import { processes } from '../support/processes.js';
import {
  kafkaSource,
  managementApi,
  production,
  subscribed,
  type Production,
} from '../support/production.js';
import { until, within } from '../support/until.js';
import type { Evidence, Order } from './tenant.js';

/**
 * A gateway with one agent and two tenants: a neighbour with measured deliveries, and an attacker
 * who only has a project key.
 */
export interface Arena {
  readonly gateway: Production;
  /**
   * Measures the neighbour for `seconds`, alone or during an attack, and waits for its last
   * delivery.
   */
  measure(seconds: number, attack?: string): Promise<Round>;
  close(): Promise<void>;
}

/** Latencies in milliseconds. */
export interface Round {
  /** Latencies from production to arrival, through a transform function. */
  readonly deliveries: readonly number[];
  /** Latencies of the neighbour's sequential requests to the management API. */
  readonly requests: readonly number[];
  /** Refused requests of the neighbour and the probes. */
  readonly failures: readonly string[];
  /** The longest response time of `/healthz` of server and agent. */
  readonly health: number;
  /** Peak resident sets in megabytes; of the agent's children, the largest. */
  readonly memory: { readonly server: number; readonly agent: number; readonly children: number };
  readonly evidence: Evidence;
}

export function together(rounds: readonly Round[]): Round {
  const evidence: Record<string, number> = {};
  for (const round of rounds)
    for (const [what, count] of Object.entries(round.evidence))
      evidence[what] = (evidence[what] ?? 0) + count;
  const most = (of: (round: Round) => number) => Math.max(...rounds.map(of));
  return {
    deliveries: rounds.flatMap((it) => it.deliveries),
    requests: rounds.flatMap((it) => it.requests),
    failures: rounds.flatMap((it) => it.failures),
    health: most((it) => it.health),
    memory: {
      server: most((it) => it.memory.server),
      agent: most((it) => it.memory.agent),
      children: most((it) => it.memory.children),
    },
    evidence,
  };
}

const PER_SECOND = 100;
const TICK_MS = 10;
const LOOK_MS = 200;
/** The time that an attack continues while deliveries of the neighbour are missing. */
export const PATIENCE_MS = 10_000;
/** The only loopback address that endpoints and sources are allowed to use. */
const NETWORK = '127.0.0.1/32';
const ACCOUNT = 'operator:the right one';

/**
 * @param scale scales the preparations of attacks and the limits of a project, so that they are
 * reached sooner
 */
export async function arena(scale = 1): Promise<Arena> {
  const closing: (() => unknown)[] = [];
  const close = async () => {
    for (const end of closing.splice(0).reverse()) await end();
  };
  try {
    const broker = await kafka();
    closing.push(() => broker.close());
    const arrived = new Map<number, number>();
    const receiver = http.createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        const { n, at } = JSON.parse(body) as { n: number; at: number };
        if (!arrived.has(n)) arrived.set(n, now() - at);
        response.end();
      });
    });
    receiver.keepAliveTimeout = 120_000;
    const port = await loopback(receiver);
    closing.push(() => (receiver.closeAllConnections(), receiver.close()));
    const gateway = await production({
      settings: {
        // These settings and NODE_OPTIONS are recommended for shared instances in
        // docs/guides/deploy.md.
        api_rate_limit: 100,
        delivery: { allowed_networks: [NETWORK] },
        source: { allowed_networks: [NETWORK] },
        limits: {
          endpoints_per_project: 1000 * scale,
          subscriptions_per_project: 1000 * scale,
          sources_per_project: 100 * scale,
          workers_per_project: 200 * scale,
          events_per_second: 200,
          routing_work: 500_000,
          event_loop_ms: 40,
        },
      },
      env: { GATEWAY_BASIC_AUTH: ACCOUNT, NODE_OPTIONS: '--max-semi-space-size=4' },
    });
    closing.push(() => gateway.close());
    await subscribed(gateway, `http://127.0.0.1:${port}/`, ['order.created']);
    const topic = await kafkaSource(gateway, broker, 2, {
      body_function: 'function transform(data) { return { event_type: "order.created", data }; }',
    });
    let made = 0;

    const neighbour = async (seconds: number) => {
      const startedAtMs = now();
      for (let tick = 1; tick <= (seconds * 1000) / TICK_MS; tick++) {
        const due =
          Math.floor((PER_SECOND * tick * TICK_MS) / 1000) -
          Math.floor((PER_SECOND * (tick - 1) * TICK_MS) / 1000);
        if (due > 0)
          await broker.produce(
            topic,
            Array.from({ length: due }, () =>
              JSON.stringify({ n: made++, at: now(), note: 'x'.repeat(500) }),
            ),
          );
        await sleep(Math.max(0, startedAtMs + tick * TICK_MS - now()));
      }
    };

    return {
      gateway,
      async measure(seconds, attack) {
        const first = made;
        const looks = watch(gateway);
        const stop =
          attack === undefined
            ? undefined
            : await attacker(attack, { gateway, broker, closing, scale });
        await neighbour(seconds);
        const isServed = () => arrived.size === made;
        // Deliveries that take longer arrive after the attack, or never.
        await until('the deliveries', isServed, { withinMs: PATIENCE_MS }).catch(() => undefined);
        const evidence = (await stop?.()) ?? {};
        await until(`the neighbour's ${made - first} deliveries`, isServed);
        return {
          deliveries: Array.from({ length: made - first }, (_, k) => arrived.get(first + k)!),
          ...(await looks.end()),
          evidence,
        };
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Starts an attack in a separate process and project. Returns a function that stops it and deletes
 * the project.
 */
async function attacker(
  attack: string,
  {
    gateway,
    broker,
    closing,
    scale,
  }: { gateway: Production; broker: KafkaBroker; closing: (() => unknown)[]; scale: number },
): Promise<() => Promise<Evidence>> {
  const operator = managementApi(gateway.serverPort, gateway.apiKey);
  const project = await operator<{ uid: string; api_key: { key: string } }>('POST', '/projects', {
    name: attack,
    type: 'outgoing',
  });
  const child = fork(fileURLToPath(import.meta.resolve('./attacker.js')), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  closing.push(() => child.kill());
  // Approximates an attacker on a separate machine.
  os.setPriority(child.pid!, os.constants.priority.PRIORITY_LOW);
  child.send({
    attack,
    port: gateway.serverPort,
    key: project.api_key.key,
    projectId: project.uid,
    brokers: [broker.listeners.plaintext],
    topic: await broker.topic({ partitions: 4 }),
    neighbourId: gateway.projectId,
    scale,
  } satisfies Order);
  await within(once(child, 'message'), 60_000, `the attack "${attack}" to begin`);
  return async () => {
    const ended = once(child, 'message') as Promise<[Evidence]>;
    child.send('stop');
    const [evidence] = await within(ended, 60_000, `the attack "${attack}" to end`);
    child.disconnect();
    await operator('DELETE', `/projects/${project.uid}`);
    const left = () =>
      gateway.database.rows(
        `select status, reason, count(*)::int as n, min(next_attempt_at - now()) as due from event_deliveries
         where project_id = $1 and status = 'processing' group by 1, 2`,
        [project.uid],
      );
    await until(
      'nothing of the attacker to be under way',
      async () => (await left()).length === 0,
      { everyMs: 200 },
    ).catch(async (error: Error) => {
      throw new Error(`${error.message}; left are ${JSON.stringify(await left())}`);
    });
    return evidence;
  };
}

/** Sends requests and samples until it is ended. */
function watch(gateway: Production) {
  const [agent] = gateway.agents;
  const memory = { server: 0, agent: 0, children: 0 };
  const requests: number[] = [];
  const failures: string[] = [];
  let health = 0;
  let isOver = false;
  const look = () => {
    const { pid } = agent!.process;
    const children = [...processes()]
      .filter(([, { parent }]) => parent === pid)
      .map(([child]) => residentMb(child));
    memory.server = Math.max(memory.server, residentMb(gateway.server.pid));
    memory.agent = Math.max(memory.agent, residentMb(pid));
    memory.children = Math.max(memory.children, ...children);
  };
  const timer = setInterval(look, LOOK_MS);
  const asking = [
    repeat(async () => {
      const began = now();
      await gateway
        .api('POST', '/events', { event_type: 'of nobody', data: {} })
        .catch((error: Error) => failures.push(String(error)));
      requests.push(now() - began);
    }),
    ...[gateway.serverPort, agent!.port].map((port) =>
      repeat(async () => {
        const began = now();
        const answer = await fetch(`http://127.0.0.1:${port}/healthz`).then(
          (it) => it.text(),
          (error: Error) => error,
        );
        if (answer instanceof Error)
          failures.push(
            `/healthz at ${port === gateway.serverPort ? 'the server' : 'the agent'}: ${String(answer.cause)}`,
          );
        health = Math.max(health, now() - began);
      }),
    ),
  ];
  async function repeat(ask: () => Promise<void>) {
    while (!isOver) {
      await ask();
      await sleep(LOOK_MS / 2);
    }
  }
  return {
    async end() {
      isOver = true;
      await Promise.all(asking);
      clearInterval(timer);
      return { requests, failures, health, memory };
    },
  };
}

function residentMb(pid: number): number {
  try {
    return Math.round(
      Number(/VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) /
        1024,
    );
  } catch {
    return 0;
  }
}

function now(): number {
  return performance.timeOrigin + performance.now();
}
