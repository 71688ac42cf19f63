import { createRequire } from 'node:module';
import net from 'node:net';
import tls from 'node:tls';
import { settles, whenAborted, type PluginLog } from '@gateway/plugin';
import { Kafka, logLevel, type ISocketFactory, type logCreator } from 'kafkajs';
import { addCodecs } from './codecs.js';
import { clusterConfig, type Connection, keyOf, type PartitionKey } from './connection.js';
import { forgetOffsetsOfEarlierTopics, type Broker } from './topic-ids.js';

const CONNECTION_TIMEOUT_MS = 3_000;
const REQUEST_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 10_000;
const CLOSE_MS = 500;

/** Bytes: the default `socket.request.max.bytes` of brokers, which no batch exceeds. */
const ANSWER_MAX_BYTES = 100 * 1024 * 1024;

export type KafkaClient = ReturnType<typeof openClient>;

/**
 * kafkajs tries the brokers in turn.
 * @param options.retries how many times a request is retried before its caller gets the error
 */
export function openClient(
  connection: Connection,
  options: { clientId: string; retries: number; logTo: logCreator; answerMaxBytes?: number },
) {
  patchKafkajs();
  addCodecs();
  const sockets = new Set<net.Socket>();
  let isClosed = false;
  const socketFactory: ISocketFactory = ({ host, port, ssl, onConnect }) => {
    if (isClosed) throw new Error('the source was closed');
    const socket = ssl
      ? tls.connect(
          {
            host,
            port,
            ...(net.isIP(host) === 0 && { servername: host.replace(/\.$/, '') }),
            ...ssl,
          },
          onConnect,
        )
      : net.connect({ host, port }, onConnect);
    socket.setNoDelay(true);
    limitAnswers(socket, options.answerMaxBytes ?? ANSWER_MAX_BYTES);
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
    retry: {
      retries: Math.max(options.retries, connection.brokers.length - 1),
      initialRetryTime: 100,
      maxRetryTime: 1000,
    },
    socketFactory,
    logLevel: logLevel.INFO,
    logCreator: options.logTo,
  });
  return {
    kafka,
    /**
     * Destroys all sockets and opens no more. Call it after every disconnect, because a disconnect
     * may still be waiting for responses that a dead broker never sends.
     */
    destroy: () => {
      isClosed = true;
      // The error makes kafkajs reject pending requests and clear their timers.
      for (const socket of sockets) socket.destroy(new Error('the source was closed'));
    },
  };
}

/**
 * kafkajs would buffer a response that exceeds `maxBytes`. Each response begins with its length.
 */
function limitAnswers(socket: net.Socket, maxBytes: number): void {
  let head: Buffer = Buffer.alloc(0);
  let left = 0;
  socket.on('data', (chunk: Buffer) => {
    for (let at = 0; at < chunk.length;) {
      const step = Math.min(left > 0 ? left : 4 - head.length, chunk.length - at);
      if (left > 0) left -= step;
      else if ((head = Buffer.concat([head, chunk.subarray(at, at + step)])).length === 4) {
        left = head.readInt32BE();
        head = Buffer.alloc(0);
        if (left < 0 || left > maxBytes) {
          socket.destroy(
            new Error(`The answer of the broker has ${left} bytes, more than ${maxBytes}.`),
          );
          return;
        }
      }
      at += step;
    }
  });
}

/** Other fields, such as requests, responses and stacks, are dropped. */
const FIELDS = [
  'broker',
  'groupId',
  'memberId',
  'topic',
  'partition',
  'retryCount',
  'retryTime',
] as const;

/**
 * Errors become warnings, because kafkajs retries them or makes `run` reject. Other lines,
 * including warnings about rebalances, are logged at `debug`.
 * @param wanted whether to log a line, because destroyed connections log errors that mean nothing
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

/**
 * Private members of kafkajs 2.2.4, the pinned version. Its public admin client neither refreshes
 * metadata nor removes members.
 */
export interface Cluster {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  addMultipleTargetTopics(topics: readonly string[]): Promise<void>;
  refreshMetadata(): Promise<void>;
  /** Describes all topics. */
  metadata(): Promise<{ readonly topicMetadata: readonly { readonly topic: string }[] }>;
  findTopicPartitionMetadata(topic: string): readonly { readonly partitionId: number }[];
  fetchTopicsOffset(
    of: readonly (TopicPartitions & {
      readonly fromBeginning?: boolean;
      /** The first offset at or after the time, and -1 without one. */
      readonly fromTimestamp?: number;
    })[],
  ): Promise<readonly TopicOffsets[]>;
  findGroupCoordinator(of: { readonly groupId: string }): Promise<Coordinator>;
}

interface TopicPartitions {
  readonly topic: string;
  readonly partitions: readonly { readonly partition: number }[];
}

interface TopicOffsets {
  readonly topic: string;
  readonly partitions: readonly { readonly partition: number; readonly offset: string }[];
}

interface Coordinator extends Broker {
  describeGroups(of: {
    readonly groupIds: readonly string[];
  }): Promise<{ readonly groups: readonly { readonly members: readonly GroupMemberFacts[] }[] }>;
  leaveGroup(of: { readonly groupId: string; readonly memberId: string }): Promise<unknown>;
  offsetCommit(of: {
    readonly groupId: string;
    readonly groupGenerationId: number;
    readonly memberId: string;
    readonly topics: readonly {
      readonly topic: string;
      readonly partitions: readonly {
        readonly partition: number;
        readonly offset: string;
        readonly metadata: string | null;
      }[];
    }[];
  }): Promise<unknown>;
}

interface GroupMemberFacts {
  readonly memberId: string;
  readonly clientId: string;
  readonly memberAssignment: Buffer;
}

/** Uses separate connections, until `work` ends or the signal aborts. Rejects if `work` rejects. */
export async function withCluster(
  connection: Connection,
  { clientId, signal }: { readonly clientId: string; readonly signal: AbortSignal },
  work: (cluster: Cluster) => Promise<void>,
): Promise<void> {
  if (signal.aborted) return;
  // Silent, because the members log the same errors.
  const client = openClient(connection, { clientId, retries: 1, logTo: silent });
  const cluster = clusterOf(client.kafka);
  try {
    const working = work(cluster);
    working.catch(() => {});
    await Promise.race([working, whenAborted(signal)]);
  } finally {
    await settles(cluster.disconnect(), CLOSE_MS);
    client.destroy();
  }
}

function clusterOf(kafka: Kafka): Cluster {
  const create = Object.getOwnPropertySymbols(kafka).find(
    ({ description }) => description === 'private:Kafka:createCluster',
  )!;
  const { [create]: createCluster } = kafka as Kafka &
    Record<symbol, (options: { allowAutoTopicCreation: boolean }) => Cluster>;
  return createCluster!({ allowAutoTopicCreation: false });
}

/** The partitions of the topics that the cluster knows. */
export function partitionsOf(
  cluster: Cluster,
  topics: readonly string[],
): { topic: string; partitions: { partition: number }[] }[] {
  return topics.map((topic) => ({
    topic,
    partitions: cluster
      .findTopicPartitionMetadata(topic)
      .map(({ partitionId }) => ({ partition: partitionId })),
  }));
}

export type Offsets = ReadonlyMap<PartitionKey, bigint>;

/** -1 if there is none. */
export async function committedOffsets(
  cluster: Cluster,
  topics: readonly string[],
  groupId: string,
): Promise<Offsets> {
  const coordinator = await cluster.findGroupCoordinator({ groupId });
  const { responses } = await coordinator.offsetFetch({
    groupId,
    topics: partitionsOf(cluster, topics),
  });
  return offsetsIn(responses);
}

/** The oldest or the next offset of each partition, or the first at or after a time. */
export async function offsetsAt(
  cluster: Cluster,
  topics: readonly string[],
  at: 'earliest' | 'latest' | { readonly timeMs: number },
): Promise<Offsets> {
  const asked = partitionsOf(cluster, topics).map((of) => ({
    ...of,
    ...(typeof at === 'object'
      ? { fromTimestamp: at.timeMs }
      : { fromBeginning: at === 'earliest' }),
  }));
  return offsetsIn(await cluster.fetchTopicsOffset(asked));
}

function offsetsIn(topics: readonly TopicOffsets[]): Offsets {
  return new Map(
    topics.flatMap(({ topic, partitions }) =>
      partitions.map(({ partition, offset }) => [keyOf(topic, partition), BigInt(offset)] as const),
    ),
  );
}

/** Private members of kafkajs 2.2.4, the pinned version. */
interface RequestQueue {
  readonly pending: readonly unknown[];
  readonly inflight: ReadonlyMap<
    number,
    { sentAt: number; requestTimeout: number; timeoutRequest(): void }
  >;
  readonly enforceRequestTimeout: boolean;
  requestTimeoutIntervalId?: NodeJS.Timeout;
  isConnected(): boolean;
  destroy(): void;
  scheduleCheckPendingRequests(): void;
  scheduleRequestTimeoutCheck(): void;
}

/** The kafkajs default of 100 ms is not needed for timeouts of at least ten seconds. */
const TIMEOUT_CHECK_MS = 1000;

/**
 * Brokers, and partitions of a topic; real clusters have fewer. kafkajs connects to every partition
 * leader, and compares all partitions of two responses.
 */
const BROKERS_MAX = 500;
const PARTITIONS_MAX = 4_000;

/** Processing so large a response would block the event loop. */
export class CrowdedClusterError extends Error {
  override readonly name = 'CrowdedClusterError';
}

interface Listed {
  readonly partitions: readonly unknown[];
}
interface Metadata {
  readonly brokers: readonly unknown[];
  readonly topicMetadata: readonly { readonly partitionMetadata: readonly unknown[] }[];
}

/** Count the brokers and partitions in a response, by the kafkajs method that requests it. */
const NAMED: Readonly<Record<string, (answer: never) => { brokers?: number; partitions: number }>> =
  {
    metadata: ({ brokers, topicMetadata }: Metadata) => ({
      brokers: brokers.length,
      partitions: topicMetadata.reduce(
        (most, { partitionMetadata }) => Math.max(most, partitionMetadata.length),
        0,
      ),
    }),
    listOffsets: ({ responses }: { responses: readonly Listed[] }) => ({
      partitions: responses.reduce(
        (sum, { partitions }) => sum + Math.max(1, partitions.length),
        0,
      ),
    }),
    // A partition takes four bytes of an assignment. Dividing by eight leaves enough for names and
    // the leader's much smaller additions.
    syncGroup: ({ memberAssignment }: { memberAssignment: Buffer }) => ({
      partitions: Math.floor(memberAssignment.length / 8),
    }),
  };

let isPatched = false;

function patchKafkajs(): void {
  if (isPatched) return;
  isPatched = true;
  patchRequestQueue();
  limitNamed();
  forgetOffsetsOfEarlierTopics();
  keepShortSessions();
}

/**
 * kafkajs would re-authenticate ten seconds before a session ends (KIP-368), so before every
 * request of a shorter session, and brokers reject a second login within a second
 * (ILLEGAL_SASL_STATE). With this, it is half a session at most.
 */
function keepShortSessions(): void {
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/network/connection') as {
    prototype: {
      isAuthenticated(): boolean;
      reauthenticationThreshold: number;
      readonly sessionLifetime: { toNumber(): number };
    };
  };
  const { isAuthenticated } = prototype;
  prototype.isAuthenticated = function () {
    const lifetimeMs = this.sessionLifetime.toNumber();
    if (lifetimeMs > 0)
      this.reauthenticationThreshold = Math.min(
        this.reauthenticationThreshold,
        Math.floor(lifetimeMs / 2),
      );
    return isAuthenticated.call(this);
  };
}

function limitNamed(): void {
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/broker') as {
    prototype: Record<string, (...asked: unknown[]) => Promise<never>>;
  };
  for (const [method, named] of Object.entries(NAMED)) {
    const ask = prototype[method]!;
    prototype[method] = async function (...asked) {
      const answer = await ask.apply(this, asked);
      const { brokers = 0, partitions } = named(answer);
      if (brokers > BROKERS_MAX) throw new CrowdedClusterError(`more than ${BROKERS_MAX} brokers`);
      if (partitions > PARTITIONS_MAX)
        throw new CrowdedClusterError(`more than ${PARTITIONS_MAX} partitions for one source`);
      return answer;
    };
  }
}

/**
 * After every response, even if nothing is pending, kafkajs sets a timer with a negative delay,
 * which wakes the process every millisecond per connection. The patch reduces an idle consumer from
 * 2.9 % to 0.25 % of a core: https://github.com/tulios/kafkajs/issues/1751
 */
function patchRequestQueue(): void {
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as {
    prototype: RequestQueue;
  };
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
