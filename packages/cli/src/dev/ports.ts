import { createServer, type AddressInfo, type Server } from 'node:net';
import { isGatewayError } from '@gateway/core/errors';
import { explainListenError } from '@gateway/core/errors';
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

export type Part = keyof Ports;

/** Ports that are held until the parts that listen there are about to, so that two starts at once get different ones. */
export interface Reservation {
  readonly ports: Ports;
  /**
   * Starts what listens on a port. When somebody else was there first, in the moment between, it is started again on another one, unless the port
   * was asked for.
   *
   * @param start lets go of the port as late as it can
   */
  listen<T>(part: Part, start: (port: number, letGo: () => Promise<void>) => Promise<T>): Promise<T>;
  /** Lets go of what is left. */
  close(): Promise<void>;
}

const USUAL: Ports = { api: 5005, agent: 5008, inbox: 5010, queue: 4566, postgres: 5433 };
const FLAGS: Readonly<Partial<Record<Part, string>>> = { api: '--port', agent: '--agent-port' };
const STEPS = 100;

/**
 * Reserves the ports that are asked for (0 lets the system choose), and for the others the first free one from the usual upward.
 *
 * @throws GatewayError `port_in_use`, `port_refused` for one that was asked for
 */
export async function reservePorts(asked: { readonly [Name in Part]?: number | undefined }): Promise<Reservation> {
  const held = new Map<Part, Server>();
  const ports: Record<Part, number> = { ...USUAL };
  const hold = async (part: Part, holding: Promise<Server>) => {
    const server = await holding;
    held.set(part, server);
    ports[part] = (server.address() as AddressInfo).port;
  };
  const letGo = async (part: Part) => {
    const server = held.get(part);
    held.delete(part);
    if (server) await new Promise((resolve) => server.close(resolve));
  };
  const close = async () => void (await Promise.all([...held.keys()].map(letGo)));
  const parts = Object.keys(USUAL) as Part[];
  try {
    // What was asked for first, so that nothing else is put there.
    for (const part of parts) if (asked[part] !== undefined) await hold(part, holdExactly(asked[part], FLAGS[part] ?? ''));
    for (const part of parts) if (asked[part] === undefined) await hold(part, holdFrom(USUAL[part]));
  } catch (error) {
    await close();
    throw error;
  }
  return {
    ports,
    async listen(part, start) {
      for (;;) {
        try {
          return await start(ports[part], () => letGo(part));
        } catch (error) {
          if (!isTaken(error) || asked[part] !== undefined) throw error;
          await letGo(part);
          await hold(part, holdFrom(ports[part] + 1));
        }
      }
    },
    close,
  };
}

function isTaken(error: unknown): boolean {
  return isGatewayError(error, 'port_in_use') || (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
}

async function holdFrom(first: number): Promise<Server> {
  for (let port = first; port < first + STEPS; port++) {
    const server = await listenOn(port).catch(() => undefined);
    if (server) return server;
  }
  throw new Problem(`none of the ports ${first} to ${first + STEPS - 1} is free on ${LOOPBACK}`, {
    fix: 'stop some of what listens there',
  });
}

async function holdExactly(port: number, flag: string): Promise<Server> {
  try {
    return await listenOn(port);
  } catch (error) {
    throw explainListenError(error, { port, bind: LOOPBACK, setting: 'leave the flag away to have one found', flag });
  }
}

function listenOn(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', reject);
    server.listen({ port, host: LOOPBACK, exclusive: true }, () => resolve(server.unref()));
  });
}
