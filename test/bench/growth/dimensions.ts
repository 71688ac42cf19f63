import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { database } from '../../support/database.js';
import type { KafkaBroker } from '../../support/kafka.js';
import {
  type Created,
  managementApi,
  kafkaSource,
  production,
  subscribed,
  succeed,
  type Production,
} from '../../support/production.js';
import type { Ground } from '../ground.js';
import { ceiling, produce } from '../systems.js';
import type { Load } from './burst.js';
import { addEndpoints, addProjects, addReceivers, addSubscriptions } from './fill.js';
import { addHistory } from './history.js';

export interface Dimension {
  /** The things that are counted, in the plural. */
  readonly name: string;
  readonly sizes: readonly number[];
  /**
   * The factor of the warm-up, by default 1. Each of several agents compiles its own code, and needs
   * as many messages for it as one agent alone.
   */
  readonly warm?: (size: number) => number;
  /** The requests of a burst, instead of those of the command line. */
  readonly requests?: (size: number) => number;
  open(ground: Ground, size: number): Promise<Load>;
}

const PARTITIONS = 8;
const EVENT_TYPE = 'order.created';
const SETTINGS = { limits: { routing_work: 0 }, api_rate_limit: 0 };

let made = 0;

/** Returns a load that writes messages to topics, an equal part to each, as fast as possible or at a rate. */
function topicLoad(
  broker: KafkaBroker,
  system: Omit<Load, 'send'>,
  topics: readonly string[],
  { requestsPerMessage = 1, rate = 0 } = {},
): Load {
  return {
    ...system,
    send: async (requests) => {
      const count = Math.ceil(requests / requestsPerMessage / topics.length);
      const sending = topics.map((topic) => {
        const from = made;
        made += count;
        return produce(broker, topic, { count, rate, from });
      });
      await Promise.all(sending);
      return count * topics.length * requestsPerMessage;
    },
  };
}

function agentsOf(gateway: Production): Omit<Load, 'send'> {
  return {
    pids: gateway.agents.map(({ process }) => process.pid),
    close: () => gateway.close(),
  };
}

/** Returns a gateway with one agent, one subscribed endpoint and a topic, as most dimensions need. */
async function withTopic(
  { topics, receiver }: Ground,
  prepare: (gateway: Production, endpointId: string) => Promise<void> = () => Promise.resolve(),
  { agents = 1, partitions = PARTITIONS, rate = 0 } = {},
): Promise<Load> {
  const gateway = await production({ agents: 0, settings: SETTINGS });
  const { uid } = await subscribed(gateway, receiver.url, [EVENT_TYPE]);
  await prepare(gateway, uid);
  const topic = await kafkaSource(gateway, topics, partitions);
  for (let k = 0; k < agents; k++) await gateway.startAgent();
  return topicLoad(topics, agentsOf(gateway), [topic], { rate });
}

const PROJECTS_OF_SHARDS = 4;
const AGENTS_MAX = 16;
/** In events per second. Sixteen agents with it do not fill two cores, as small batches cost most. */
const RATE_PER_AGENT = 25;
const STEADY_SECONDS = 15;

export const dimensions: readonly Dimension[] = [
  {
    name: 'shards',
    sizes: [1, 2, 4],
    async open({ topics, receiver }, size) {
      const gateway = await production({ agents: 0, settings: SETTINGS });
      const { folder } = gateway.run;
      const shards = ['default'];
      for (let k = 1; k < size; k++) {
        const { connection } = await database();
        const place = Object.entries(connection).flatMap(([flag, it]) => [`--${flag}`, String(it)]);
        await succeed(['shards', 'add', `s${k}`, ...place], { folder });
        shards.push(`s${k}`);
      }
      const call = managementApi(gateway.serverPort, gateway.apiKey);
      const projects = await Promise.all(
        Array.from({ length: PROJECTS_OF_SHARDS }, async (_, k) => {
          const { uid: projectId } = await call<Created>('POST', '/projects', {
            name: `project ${k}`,
            type: 'outgoing',
          });
          await succeed(['shards', 'move', projectId, shards[k % size]!], { folder });
          const api: Production['api'] = (method, path, body, headers) =>
            call(method, `/projects/${projectId}${path}`, body, headers);
          const project = { ...gateway, projectId, api };
          await subscribed(project, receiver.url, [EVENT_TYPE]);
          return kafkaSource(project, topics, PARTITIONS / PROJECTS_OF_SHARDS);
        }),
      );
      await gateway.startAgent();
      return topicLoad(topics, agentsOf(gateway), projects);
    },
  },
  {
    name: 'agents',
    sizes: [1, 4, AGENTS_MAX],
    requests: (size) => size * RATE_PER_AGENT * STEADY_SECONDS,
    open: (ground, size) =>
      withTopic(ground, undefined, {
        agents: size,
        partitions: AGENTS_MAX,
        rate: size * RATE_PER_AGENT,
      }),
  },
  {
    name: 'agents that share a stream',
    sizes: [1, 4, AGENTS_MAX],
    warm: (size) => size,
    open: (ground, size) => withTopic(ground, undefined, { agents: size, partitions: AGENTS_MAX }),
  },
  {
    name: 'ceilings that share a stream',
    sizes: [1, 4, AGENTS_MAX],
    warm: (size) => size,
    async open({ topics, receiver }, size) {
      const system = await ceiling(topics, receiver.url, AGENTS_MAX);
      const pids: number[] = [];
      while (pids.length < size) pids.push(await system.start());
      return topicLoad(topics, { pids, close: () => system.close() }, [system.topic]);
    },
  },
  {
    name: 'partitions',
    sizes: [1, 10, 100],
    open: (ground, size) => withTopic(ground, undefined, { partitions: size }),
  },
  {
    name: 'rows of history',
    sizes: [1_000_000, 10_000_000, 100_000_000],
    open: (ground, size) =>
      withTopic(ground, (gateway, endpointId) => addHistory(gateway, endpointId, size)),
  },
  {
    name: 'subscriptions of a project',
    sizes: [1, 100, 10_000, 100_000],
    open: (ground, size) =>
      withTopic(ground, async (gateway) => {
        const endpoints = await addEndpoints(gateway, ground.receiver.url, Math.min(size, 1_000));
        await addSubscriptions(gateway, endpoints, size - 1);
      }),
  },
  {
    name: 'projects',
    sizes: [1, 100, 10_000],
    async open({ receiver }, size) {
      const gateway = await production({ agents: 0, settings: SETTINGS });
      await subscribed(gateway, receiver.url, [EVENT_TYPE]);
      const more = await addProjects(gateway, size - 1);
      await addReceivers(gateway, more, {
        url: receiver.url,
        subscriptions: 1,
        eventType: EVENT_TYPE,
      });
      await gateway.startAgent();
      const headers = {
        'content-type': 'application/json',
        authorization: `Bearer ${gateway.apiKey}`,
      };
      const urls = [gateway.projectId, ...more].map(
        (id) => `http://127.0.0.1:${gateway.serverPort}/api/v1/projects/${id}/events`,
      );
      return {
        pids: [gateway.server.pid, ...gateway.agents.map(({ process }) => process.pid)],
        send: (requests) => post({ urls, headers, count: requests }),
        close: () => gateway.close(),
      };
    },
  },
  {
    name: 'endpoints of an event',
    sizes: [1, 10, 100, 1_000, 10_000],
    open: async ({ topics, receiver }, size) => {
      const gateway = await production({ agents: 0, settings: SETTINGS });
      await addSubscriptions(
        gateway,
        await addEndpoints(gateway, receiver.url, size),
        size,
        EVENT_TYPE,
      );
      const topic = await kafkaSource(gateway, topics, PARTITIONS);
      await gateway.startAgent();
      return topicLoad(topics, agentsOf(gateway), [topic], { requestsPerMessage: size });
    },
  },
];

const CONNECTIONS = 64;

/** Posts events, one by one, to the URLs in turn. Returns their number. */
async function post(options: {
  urls: readonly string[];
  headers: Readonly<Record<string, string>>;
  count: number;
}): Promise<number> {
  const running = promisify(execFile)(process.execPath, [
    fileURLToPath(new URL('../poster.mjs', import.meta.url)),
    '-',
  ]);
  running.child.stdin!.end(JSON.stringify({ connections: CONNECTIONS, rate: 0, ...options }));
  const { posted, statuses } = JSON.parse((await running).stdout) as {
    posted: number;
    statuses: Readonly<Record<string, number>>;
  };
  if (Object.keys(statuses).join() !== '201')
    throw new Error(`posts were answered ${JSON.stringify(statuses)}`);
  return posted;
}
