import http from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { loopback } from '../../support/ports.js';
import type { Arrival } from './journal.js';

/** An endpoint that checks signatures and remembers what came, and what it answered. */
export interface Receiver {
  readonly port: number;
  readonly arrivals: readonly Arrival[];
  /** What it answers from now on; it holds those that hang until their sender gives up. */
  answer(status: Arrival['status']): void;
  /** What its requests are signed with, as soon as the endpoint exists. */
  expect(secret: string): void;
  close(): Promise<void>;
}

/** An answer takes up to so long, as they do, so that there is something in flight at every moment. */
const SLOWNESS_MS = 30;

/** Starts a receiver that answers 200. */
export async function startReceiver(): Promise<Receiver> {
  const arrivals: Arrival[] = [];
  const sockets = new Set<Socket>();
  let answer: Arrival['status'] = 200;
  let webhook: Webhook | undefined;

  const isSigned = (body: string, headers: http.IncomingHttpHeaders): boolean => {
    try {
      webhook?.verify(body, headers as Record<string, string>);
      return webhook !== undefined;
    } catch {
      return false;
    }
  };
  const receive = async (request: http.IncomingMessage, response: http.ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const status = answer;
    arrivals.push({
      n: Number(/"n":(\d+)/.exec(body)?.[1] ?? -1),
      webhookId: String(request.headers['webhook-id']),
      sentAtSeconds: Number(request.headers['webhook-timestamp']),
      atMs: Date.now(),
      status,
      isSigned: isSigned(body, request.headers),
    });
    if (status === 'hung') return;
    await sleep(Math.random() * SLOWNESS_MS);
    response.writeHead(status).end();
  };
  const server = http.createServer((request, response) => {
    receive(request, response).catch(() => request.destroy()); // the sender went away
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const port = await loopback(server);
  return {
    port,
    arrivals,
    answer: (status) => (answer = status),
    expect: (secret) => (webhook = new Webhook(secret)),
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
