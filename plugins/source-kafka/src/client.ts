import { Kafka, logLevel, type logCreator } from 'kafkajs';
import { addCodecs } from './codecs.js';
import { clusterConfig, type Connection } from './connection.js';
import { mendRequestQueue } from './request-queue.js';
import { Sockets } from './sockets.js';

const CONNECTION_TIMEOUT_MS = 3_000;
const REQUEST_TIMEOUT_MS = 10_000;

export interface Client {
  readonly kafka: Kafka;
  /** Cuts the sockets that kafkajs has left, and lets it open no more. Call it after every disconnect. */
  destroy(): void;
}

/** A kafkajs client. `retries` is how often one request is tried again before its caller hears of it; brokers of the list are tried in turn. */
export function openClient(connection: Connection, options: { clientId: string; retries: number; logTo: logCreator }): Client {
  mendRequestQueue();
  addCodecs();
  const sockets = new Sockets();
  const kafka = new Kafka({
    ...clusterConfig(connection),
    clientId: options.clientId,
    connectionTimeout: CONNECTION_TIMEOUT_MS,
    authenticationTimeout: CONNECTION_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    retry: { retries: Math.max(options.retries, connection.brokers.length - 1), initialRetryTime: 100, maxRetryTime: 1000 },
    socketFactory: sockets.factory,
    logLevel: logLevel.INFO,
    logCreator: options.logTo,
  });
  return { kafka, destroy: () => sockets.destroy() };
}
