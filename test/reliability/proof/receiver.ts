import http from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { loopback } from '../../support/ports.js';
import type { Arrival } from './journal.js';

/** An endpoint that checks signatures and records requests and responses. */
export interface Receiver {
  readonly port: number;
  readonly arrivals: readonly Arrival[];
  /** Sets the next responses; `hung` holds requests until the sender gives up. */
  answer(status: Arrival['status']): void;
  /** Sets the signing secret of requests to a path, once the endpoint exists. */
  expect(secret: string, path: string): void;
  close(): Promise<void>;
}

/** The maximum response time, as in practice: something is in flight at any moment. */
const SLOWNESS_MS = 30;

export async function startReceiver(): Promise<Receiver> {
  const arrivals: Arrival[] = [];
  const sockets = new Set<Socket>();
  let answer: Arrival['status'] = 200;
  const webhooks = new Map<string, Webhook>();

  const isSigned = (body: string, { url, headers }: http.IncomingMessage): boolean => {
    const webhook = webhooks.get(url!);
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
      isSigned: isSigned(body, request),
    });
    if (status === 'hung') return;
    await sleep(Math.random() * SLOWNESS_MS);
    response.writeHead(status).end();
  };
  const server = http.createServer((request, response) => {
    receive(request, response).catch(() => request.destroy()); // the sender disconnected
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
    expect: (secret, path) => void webhooks.set(path, new Webhook(secret)),
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
