import { createServer, type AddressInfo, type Server } from 'node:net';
import { explainListenError } from '@gateway/core/failures';
import { Problem } from './problem.js';

export const LOOPBACK = '127.0.0.1';

/** A port for each part, all on loopback. */
export interface Ports {
  readonly api: number;
  readonly agent: number;
  readonly inbox: number;
  readonly queue: number;
  readonly postgres: number;
}

/** Ports that are held until the part that listens there is about to start: two starts at once get different ones. */
export interface Reservation {
  readonly ports: Ports;
  /** Lets go of one. */
  release(part: keyof Ports): Promise<void>;
  /** Lets go of what is left. */
  close(): Promise<void>;
}

const USUAL: Ports = { api: 5005, agent: 5008, inbox: 5010, queue: 4566, postgres: 5433 };
const FLAGS: Readonly<Partial<Record<keyof Ports, string>>> = { api: '--port', agent: '--agent-port' };
const STEPS = 100;

/**
 * Reserves the ports that are asked for (0 lets the system choose), and for the others the first free one from the usual upward.
 *
 * @throws GatewayError `port_in_use`, `port_refused` for one that was asked for
 */
export async function reservePorts(asked: { readonly [Part in keyof Ports]?: number | undefined }): Promise<Reservation> {
  const held = new Map<keyof Ports, Server>();
  const release = async (part: keyof Ports) => {
    const server = held.get(part);
    held.delete(part);
    if (server) await new Promise((resolve) => server.close(resolve));
  };
  const close = async () => void (await Promise.all([...held.keys()].map(release)));
  const parts = Object.keys(USUAL) as (keyof Ports)[];
  try {
    // What was asked for first, so that nothing else is put there.
    for (const part of parts) {
      const port = asked[part];
      if (port !== undefined) held.set(part, await holdExactly(port, FLAGS[part] ?? ''));
    }
    for (const part of parts) if (!held.has(part)) held.set(part, await holdFrom(USUAL[part]));
  } catch (error) {
    await close();
    throw error;
  }
  const ports = Object.fromEntries([...held].map(([part, server]) => [part, (server.address() as AddressInfo).port])) as unknown as Ports;
  return { ports, release, close };
}

async function holdFrom(first: number): Promise<Server> {
  for (let port = first; port < first + STEPS; port++) {
    const server = await hold(port).catch(() => undefined);
    if (server) return server;
  }
  throw new Problem(`none of the ports ${first} to ${first + STEPS - 1} is free on ${LOOPBACK}`, {
    fix: 'stop some of what listens there',
  });
}

async function holdExactly(port: number, flag: string): Promise<Server> {
  try {
    return await hold(port);
  } catch (error) {
    throw explainListenError(error, { port, bind: LOOPBACK, setting: 'leave the flag away to have one found', flag });
  }
}

function hold(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', reject);
    server.listen({ port, host: LOOPBACK, exclusive: true }, () => resolve(server.unref()));
  });
}
