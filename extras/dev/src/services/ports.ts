import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { explainListenError } from '@gateway/core/errors';
import { DevError } from './dev-error.js';

export const LOOPBACK = '127.0.0.1';

/**
 * The default port of Postgres, derived from the current folder: Postgres takes a while to bind its
 * port, and concurrent starts in different folders must not compete for one.
 */
const POSTGRES_PORT =
  15_433 + (createHash('sha256').update(process.cwd()).digest().readUInt16BE() % 4_000);
const USUAL = { api: 5005, agent: 5008, inbox: 5010, queue: 4566, postgres: POSTGRES_PORT };
const FLAGS: Readonly<Partial<Record<Part, string>>> = { api: '--port', agent: '--agent-port' };
const TRIES = 100;

type Part = keyof typeof USUAL;

/** The ports of all parts, on loopback. */
export interface Ports {
  readonly numbers: Readonly<Record<Part, number>>;
  /** Frees and returns the port of a part, which is bound until then to reserve it. */
  release(part: Part): Promise<number>;
}

/**
 * Chooses and reserves the ports of all parts.
 *
 * @param requested the port of each part: 0 for any free port, undefined for the default port or
 *   the next free one
 * @throws GatewayError `port_in_use` or `port_refused` for a requested port
 */
export async function choosePorts(requested: {
  readonly [Name in Part]?: number | undefined;
}): Promise<Ports> {
  // Requested ports are bound first, so that no other part can take them.
  const parts = (Object.keys(USUAL) as Part[]).sort(
    (a, b) => Number(requested[a] === undefined) - Number(requested[b] === undefined),
  );
  const held = new Map<Part, Server>();
  for (const part of parts) held.set(part, await hold(part, requested[part]));
  const numbers = Object.fromEntries(
    [...held].map(([part, server]) => [part, (server.address() as AddressInfo).port]),
  );
  return {
    numbers: numbers as Ports['numbers'],
    async release(part) {
      await new Promise((resolve) => held.get(part)?.close(resolve));
      return numbers[part]!;
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
      const place = {
        port,
        bind: LOOPBACK,
        setting: 'omit the flag to use the next free port',
        flag: FLAGS[part] ?? '',
      };
      if (requested !== undefined) throw explainListenError(error, place);
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
  throw new DevError(
    `none of the ports ${first} to ${first + TRIES - 1} is free on ${LOOPBACK}`,
    'stop a process that listens there',
  );
}
