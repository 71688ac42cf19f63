import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { loopback } from './ports.js';
import { certificates } from './start/certificates.js';
import { tempFolder } from './start/keep.js';
import { until } from './until.js';

export interface ReceivedRequest {
  readonly method: string;
  readonly url: string;
  /** Lower-case names; repeated headers are joined with a comma. */
  readonly headers: Readonly<Record<string, string>>;
  /** Name, value, name, value, in the sender's order and spelling. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** Arrival of the last byte, in epoch milliseconds. */
  readonly receivedAt: number;
}

export interface Answer {
  /** Default 200. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array;
  readonly delayMs?: number;
  /** Never answers and keeps the connection open. */
  readonly hang?: boolean;
  /** Closes the connection without a response. */
  readonly close?: boolean;
}

/**
 * One response for all requests, a list used in order (the last one repeats), or a function of the
 * request and its number, from 0.
 */
export type Script =
  | Answer
  | readonly Answer[]
  | ((request: ReceivedRequest, number: number) => Answer | Promise<Answer>);

/** A real HTTP receiver on loopback. */
export interface Endpoint {
  /** `http://127.0.0.1:port` or `https://localhost:port` */
  readonly url: string;
  readonly port: number;
  /** All requests, in the order of their last byte. */
  readonly requests: readonly ReceivedRequest[];
  readonly connections: { readonly total: number; readonly open: number };
  /** Replaces the script; a list starts from its beginning. */
  answer(script: Script): void;
  /** Waits for at least `count` requests and returns all. */
  received(count: number, options?: { withinMs?: number }): Promise<readonly ReceivedRequest[]>;
  /** Closes the server and every connection, including hanging ones. */
  close(): Promise<void>;
}

/**
 * Starts a receiver that answers 200 by default.
 * @param options.port by default a free one; `options.tls` serves HTTPS with a certificate of a
 * temporary authority
 */
export async function endpoint(
  options: { answer?: Script; port?: number; tls?: boolean } = {},
): Promise<Endpoint> {
  let script: Script = options.answer ?? {};
  let number = 0;
  let total = 0;
  const requests: ReceivedRequest[] = [];
  const sockets = new Set<Socket>();

  const listener: http.RequestListener = (incoming, response) => {
    void receive(incoming)
      .then(async (request) => {
        requests.push(request);
        await send(await next(script, request, number++), incoming, response);
      })
      .catch(() => incoming.destroy()); // the sender disconnected
  };
  const files = options.tls ? certificates(path.join(tempFolder('endpoint'), 'tls')) : undefined;
  const server = files
    ? https.createServer(
        { key: fs.readFileSync(files.key), cert: fs.readFileSync(files.certificate) },
        listener,
      )
    : http.createServer(listener);
  server.on('connection', (socket: Socket) => {
    total++;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const port = await loopback(server, options.port);

  return {
    url: files ? `https://localhost:${port}` : `http://127.0.0.1:${port}`,
    port,
    requests,
    get connections() {
      return { total, open: sockets.size };
    },
    answer: (changed) => {
      script = changed;
      number = 0;
    },
    received: (count, { withinMs = 60_000 } = {}) =>
      until(
        `${count} requests at the endpoint (${requests.length} when the wait began)`,
        () => requests.length >= count && requests,
        {
          withinMs,
        },
      ),
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function receive(incoming: http.IncomingMessage): Promise<ReceivedRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const headers = Object.entries(incoming.headersDistinct).map(
    ([name, values]) => [name, (values ?? []).join(', ')] as const,
  );
  return {
    method: incoming.method ?? '',
    url: incoming.url ?? '',
    headers: Object.fromEntries(headers),
    rawHeaders: incoming.rawHeaders,
    body: Buffer.concat(chunks),
    receivedAt: Date.now(),
  };
}

function next(script: Script, request: ReceivedRequest, number: number): Answer | Promise<Answer> {
  if (typeof script === 'function') return script(request, number);
  if (!isList(script)) return script;
  return script[Math.min(number, script.length - 1)] ?? {};
}

function isList(script: Answer | readonly Answer[]): script is readonly Answer[] {
  return Array.isArray(script);
}

async function send(
  answer: Answer,
  incoming: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  if (answer.delayMs) await sleep(answer.delayMs, undefined, { ref: false });
  if (answer.hang) return;
  if (answer.close) return void incoming.socket.destroy();
  response.writeHead(answer.status ?? 200, answer.headers as http.OutgoingHttpHeaders | undefined);
  response.end(answer.body);
}
