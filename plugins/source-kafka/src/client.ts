import net from 'node:net';
import tls from 'node:tls';
import type { PluginLog } from '@gateway/plugin';
import { Kafka, logLevel, type ISocketFactory, type logCreator } from 'kafkajs';
import { addCodecs } from './codecs.js';
import { clusterConfig, type Connection } from './connection.js';
import { patchRequestQueue } from './request-queue.js';

const CONNECTION_TIMEOUT_MS = 3_000;
const REQUEST_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 10_000;

export interface Client {
  readonly kafka: Kafka;
  /** Destroys the open sockets and opens no more. Call it after every disconnect: that of kafkajs waits for answers that a dead broker never gives. */
  destroy(): void;
}

/** A kafkajs client. `retries` is how often a request is retried before its caller gets the error; the brokers of the list are tried in turn. */
export function openClient(connection: Connection, options: { clientId: string; retries: number; logTo: logCreator }): Client {
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
