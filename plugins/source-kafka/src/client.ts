import { createRequire } from 'node:module';
import net from 'node:net';
import tls from 'node:tls';
import type { PluginLog } from '@gateway/plugin';
import { Kafka, logLevel, type ISocketFactory, type logCreator } from 'kafkajs';
import { addCodecs } from './codecs.js';
import { clusterConfig, type Connection } from './connection.js';

const CONNECTION_TIMEOUT_MS = 3_000;
const REQUEST_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 10_000;

export type Client = ReturnType<typeof openClient>;

/** A kafkajs client. `retries` is how often a request is retried before its caller gets the error; the brokers of the list are tried in turn. */
export function openClient(connection: Connection, options: { clientId: string; retries: number; logTo: logCreator }) {
  patchRequestQueue();
  addCodecs();
  const sockets = new Set<net.Socket>();
  let isClosed = false;
  const socketFactory: ISocketFactory = ({ host, port, ssl, onConnect }) => {
    if (isClosed) throw new Error('the source was closed');
    const socket = ssl
      ? tls.connect({ host, port, ...(net.isIP(host) === 0 && { servername: host }), ...ssl }, onConnect)
      : net.connect({ host, port }, onConnect);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    return socket;
  };
  const kafka = new Kafka({
    ...clusterConfig(connection),
    clientId: options.clientId,
    connectionTimeout: CONNECTION_TIMEOUT_MS,
    authenticationTimeout: CONNECTION_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    retry: { retries: Math.max(options.retries, connection.brokers.length - 1), initialRetryTime: 100, maxRetryTime: 1000 },
    socketFactory,
    logLevel: logLevel.INFO,
    logCreator: options.logTo,
  });
  return {
    kafka,
    /** Destroys the open sockets and opens no more. Call it after every disconnect: that of kafkajs waits for answers that a dead broker never gives. */
    destroy: () => {
      isClosed = true;
      // With an error kafkajs rejects its pending requests and clears their timers.
      for (const socket of sockets) socket.destroy(new Error('the source was closed'));
    },
  };
}

/** Fields of kafkajs' log lines that say where something happened. Everything else (requests, responses, stacks) is dropped. */
const FIELDS = ['broker', 'groupId', 'memberId', 'topic', 'partition', 'retryCount', 'retryTime'] as const;

/**
 * Sends the log of kafkajs to that of the gateway. An error of kafkajs is retried or makes `run` reject, so it is a warning here; a warning of kafkajs is a
 * rebalance.
 * @param wanted called for every line: connections that are destroyed complain
 */
export function logTo(log: PluginLog, wanted: () => boolean): logCreator {
  return () => (entry) => {
    if (!wanted()) return;
    const fields: Record<string, unknown> = {};
    for (const name of FIELDS) if (entry.log[name] !== undefined) fields[name] = entry.log[name];
    if (typeof entry.log['error'] === 'string') fields['reason'] = entry.log['error'];
    const sentence = `kafkajs ${entry.namespace}: ${entry.log.message}`;
    if (entry.level === logLevel.ERROR) log.warn(fields, sentence);
    else log.debug(fields, sentence);
  };
}

export const silent: logCreator = () => () => {};

/** What is used of the private cluster of kafkajs 2.2.4, the exact version that this package depends on: its admin neither refreshes metadata nor removes members. */
export interface Cluster {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  addTargetTopic(topic: string): Promise<void>;
  refreshMetadata(): Promise<void>;
  findTopicPartitionMetadata(topic: string): readonly { readonly partitionId: number }[];
  fetchTopicsOffset(of: readonly (Topic & { readonly fromBeginning: boolean })[]): Promise<readonly TopicOffsets[]>;
  findGroupCoordinator(of: { readonly groupId: string }): Promise<Coordinator>;
}

interface Topic {
  readonly topic: string;
  readonly partitions: readonly { readonly partition: number }[];
}

interface TopicOffsets {
  readonly partitions: readonly { readonly partition: number; readonly offset: string }[];
}

interface Coordinator {
  offsetFetch(of: {
    readonly groupId: string;
    readonly topics: readonly Topic[];
  }): Promise<{ readonly responses: readonly TopicOffsets[] }>;
  describeGroups(of: {
    readonly groupIds: readonly string[];
  }): Promise<{ readonly groups: readonly { readonly members: readonly GroupMemberFacts[] }[] }>;
  leaveGroup(of: { readonly groupId: string; readonly memberId: string }): Promise<unknown>;
}

interface GroupMemberFacts {
  readonly memberId: string;
  readonly clientId: string;
  readonly memberAssignment: Buffer;
}

/** The private cluster of a client. Connections that it opens end with `destroy` of the client. */
export function clusterOf(kafka: Kafka): Cluster {
  const create = Object.getOwnPropertySymbols(kafka).find(({ description }) => description === 'private:Kafka:createCluster')!;
  const of = kafka as unknown as Record<symbol, (options: { allowAutoTopicCreation: boolean }) => Cluster>;
  return of[create]!({ allowAutoTopicCreation: false });
}

/** The committed offset of each partition of the topic, -1 where there is none. */
export async function committedOffsets(cluster: Cluster, topic: string, groupId: string): Promise<ReadonlyMap<number, bigint>> {
  const partitions = cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => ({ partition: partitionId }));
  const coordinator = await cluster.findGroupCoordinator({ groupId });
  const { responses } = await coordinator.offsetFetch({ groupId, topics: [{ topic, partitions }] });
  return new Map(responses[0]?.partitions.map(({ partition, offset }) => [partition, BigInt(offset)]));
}

/** What is used of the request queue of kafkajs 2.2.4, the exact version that this package depends on. */
interface RequestQueue {
  readonly pending: readonly unknown[];
  readonly inflight: ReadonlyMap<number, { sentAt: number; requestTimeout: number; timeoutRequest(): void }>;
  readonly enforceRequestTimeout: boolean;
  requestTimeoutIntervalId?: NodeJS.Timeout;
  isConnected(): boolean;
  destroy(): void;
  scheduleCheckPendingRequests(): void;
  scheduleRequestTimeoutCheck(): void;
}

/** Resolution of request timeouts, which are ten seconds and more; that of kafkajs is 100 ms. */
const TIMEOUT_CHECK_MS = 1000;

let isPatched = false;

/**
 * Patches the timers of kafkajs: after every response its request queue sets a timer with a negative delay, even when nothing is pending, which wakes the process
 * every millisecond per connection. An idle consumer took 2.9 % of a core, patched 0.25 %. https://github.com/tulios/kafkajs/issues/1751
 */
function patchRequestQueue(): void {
  if (isPatched) return;
  isPatched = true;
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as { prototype: RequestQueue };
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue) {
    if (this.pending.length > 0) schedule.call(this);
  };
  prototype.scheduleRequestTimeoutCheck = function (this: RequestQueue) {
    if (!this.enforceRequestTimeout) return;
    this.destroy();
    this.requestTimeoutIntervalId = setInterval(() => {
      const now = Date.now();
      for (const request of [...this.inflight.values()]) {
        if (now - request.sentAt > request.requestTimeout) request.timeoutRequest();
      }
      if (!this.isConnected()) this.destroy();
    }, TIMEOUT_CHECK_MS);
  };
}
