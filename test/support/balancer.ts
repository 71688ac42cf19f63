import http from 'node:http';
import { loopback } from './ports.js';

/** An HTTP load balancer with health checks, as docs/guides/deploy.md describes one. */
export interface Balancer {
  readonly port: number;
  /** Whether the last health check of this backend succeeded. */
  isHealthy(port: number): boolean;
  close(): Promise<void>;
}

export const CHECK_EVERY_MS = 250;
/** Paths that agents answer. */
const EVENTS = /\/events(\/(fanout|broadcast|batch))?$|^\/ingest\//;

/**
 * Starts a balancer: `POST …/events` and `/ingest/` go to the agents in turn, everything else to the
 * servers. It asks each for `/healthz?ready`, keeps connections open, and tries another one only if a
 * connection is refused, since a request that was sent may have been handled.
 */
export async function balancer(pools: {
  readonly agents: ReadonlySet<number>;
  readonly servers: ReadonlySet<number>;
}): Promise<Balancer> {
  const agent = new http.Agent({ keepAlive: true });
  const healthy = new Set<number>();
  let turn = 0;
  const check = async (port: number) => {
    const answer = await fetch(`http://127.0.0.1:${port}/healthz?ready`, {
      signal: AbortSignal.timeout(5_000),
    }).catch(() => undefined);
    await answer?.arrayBuffer();
    if (answer?.ok) healthy.add(port);
    else healthy.delete(port);
  };
  const checkAll = () => Promise.all([...pools.agents, ...pools.servers].map(check));
  const timer = setInterval(() => void checkAll(), CHECK_EVERY_MS);

  const send = (
    { method, url: path, headers }: http.IncomingMessage,
    body: Buffer,
    ports: readonly number[],
    response: http.ServerResponse,
  ): void => {
    const [port, ...others] = ports;
    if (port === undefined) return void response.writeHead(503).end('nothing is ready');
    const request = http.request({ port, host: '127.0.0.1', method, path, headers, agent });
    request.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, { ...answer.headers, connection: 'keep-alive' });
      answer.pipe(response);
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') {
        healthy.delete(port);
        send({ method, url: path, headers } as http.IncomingMessage, body, others, response);
      } else if (response.headersSent) response.destroy();
      else response.writeHead(502).end(`${error.message} at ${port}`);
    });
    request.end(body);
  };
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { pathname } = new URL(`http://balancer${request.url}`);
      const pool = request.method === 'POST' && EVENTS.test(pathname) ? 'agents' : 'servers';
      const ports = [...pools[pool]].filter((port) => healthy.has(port));
      const first = turn++ % (ports.length || 1);
      send(
        request,
        Buffer.concat(chunks),
        [...ports.slice(first), ...ports.slice(0, first)],
        response,
      );
    });
  });
  const port = await loopback(server);
  await checkAll();
  return {
    port,
    isHealthy: (backend) => healthy.has(backend),
    close: () => {
      clearInterval(timer);
      agent.destroy();
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
