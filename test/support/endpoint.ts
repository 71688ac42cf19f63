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

/** A request as it came over the wire. */
export interface ReceivedRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** Names in lower case; those that came twice joined with a comma. */
  readonly headers: Readonly<Record<string, string>>;
  /** Name, value, name, value, in the order and spelling of the sender. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** When its last byte came, in epoch milliseconds. */
  readonly receivedAt: number;
}

/** What the endpoint does with a request. */
export interface Answer {
  /** 200 when not given. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array;
  /** Wait so long before answering. */
  readonly delayMs?: number;
  /** Never answer, and hold the connection. */
  readonly hang?: boolean;
  /** Close the connection without an answer. */
  readonly close?: boolean;
}

/** An answer for all requests, one for each in turn (the last one stays), or one made from the request and its number, counted from 0. */
export type Script = Answer | readonly Answer[] | ((request: ReceivedRequest, number: number) => Answer | Promise<Answer>);

/** A real HTTP receiver on loopback. */
export interface Endpoint {
  /** `http://127.0.0.1:port`, or `https://localhost:port`. */
  readonly url: string;
  readonly port: number;
  /** All requests so far, in the order of their last byte. */
  readonly requests: readonly ReceivedRequest[];
  /** Connections that were opened so far, and those that are open now. */
  readonly connections: { readonly total: number; readonly open: number };
  /** Changes what happens from now on; lists start from their beginning. */
  answer(script: Script): void;
  /** Waits until at least so many requests have come, and gives them all. */
  received(count: number, options?: { withinMs?: number }): Promise<readonly ReceivedRequest[]>;
  /** Closes the server and every connection, hanging ones too. */
  close(): Promise<void>;
}

/**
 * Starts a receiver that answers 200 until told otherwise.
 * @param options.port a free one when not given; `options.tls` asks for HTTPS with a certificate of its own authority
 */
export async function endpoint(options: { answer?: Script; port?: number; tls?: boolean } = {}): Promise<Endpoint> {
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
      .catch(() => incoming.destroy()); // the sender went away
  };
  const files = options.tls ? certificates(path.join(tempFolder('endpoint'), 'tls')) : undefined;
  const server = files
    ? https.createServer({ key: fs.readFileSync(files.key), cert: fs.readFileSync(files.certificate) }, listener)
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
      until(`${count} requests at the endpoint (${requests.length} when the wait began)`, () => requests.length >= count && requests, {
        withinMs,
      }),
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
  const headers = Object.entries(incoming.headersDistinct).map(([name, values]) => [name, (values ?? []).join(', ')] as const);
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

async function send(answer: Answer, incoming: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
  if (answer.delayMs) await sleep(answer.delayMs, undefined, { ref: false });
  if (answer.hang) return;
  if (answer.close) return void incoming.socket.destroy();
  response.writeHead(answer.status ?? 200, answer.headers as http.OutgoingHttpHeaders | undefined);
  response.end(answer.body);
}
