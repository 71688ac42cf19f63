import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { explainListenError } from '@gateway/core/errors';
import { DevError } from '../error.js';

export const LOOPBACK = '127.0.0.1';

/** Postgres takes a while to bind its port, so each folder has one of its own: two that start at once do not compete for it. */
const POSTGRES_PORT = 15_433 + (createHash('sha256').update(process.cwd()).digest().readUInt16BE() % 4_000);
const USUAL = { api: 5005, agent: 5008, inbox: 5010, queue: 4566, postgres: POSTGRES_PORT };
const FLAGS: Readonly<Partial<Record<Part, string>>> = { api: '--port', agent: '--agent-port' };
const TRIES = 100;

type Part = keyof typeof USUAL;

/** The ports of all parts, on loopback. */
export interface Ports {
  readonly numbers: Readonly<Record<Part, number>>;
  /** Frees a port for its part, and returns it. Until then it is held, so that no other process takes it. */
  release(part: Part): Promise<number>;
  /** Frees all. */
  close(): Promise<void>;
}

/**
 * @param requested the ports of the command line, 0 for any free port; the other parts get their usual port, or the next that is free
 * @throws GatewayError `port_in_use` or `port_refused` for a requested port
 */
export async function choosePorts(requested: { readonly [Name in Part]?: number | undefined }): Promise<Ports> {
  // Requested ports first: no other part takes one of them.
  const parts = (Object.keys(USUAL) as Part[]).sort((a, b) => Number(requested[a] === undefined) - Number(requested[b] === undefined));
  const held = new Map<Part, Server>();
  for (const part of parts) held.set(part, await hold(part, requested[part]));
  const numbers = Object.fromEntries([...held].map(([part, server]) => [part, (server.address() as AddressInfo).port]));
  const free = (part: Part) => new Promise((resolve) => held.get(part)?.close(resolve));
  return {
    numbers: numbers as Ports['numbers'],
    async release(part) {
      await free(part);
      return numbers[part]!;
    },
    async close() {
      await Promise.all(parts.map(free));
    },
  };
}

async function hold(part: Part, requested: number | undefined): Promise<Server> {
  const first = requested ?? USUAL[part];
  for (let port = first; port < first + TRIES; port++) {
    const server = createServer((socket) => socket.destroy());
    try {
      await once(server.listen({ port, host: LOOPBACK, exclusive: true }), 'listening');
      return server.unref();
    } catch (error) {
      const place = { port, bind: LOOPBACK, setting: 'omit the flag to use the next free port', flag: FLAGS[part] ?? '' };
      if (requested !== undefined) throw explainListenError(error, place);
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
  throw new DevError(`none of the ports ${first} to ${first + TRIES - 1} is free on ${LOOPBACK}`, 'stop a process that listens there');
}
