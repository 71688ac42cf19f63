import { createServer, type AddressInfo } from 'node:net';
import { explainListenError, isGatewayError } from '@gateway/core/errors';
import { DevError } from '../error.js';

export const LOOPBACK = '127.0.0.1';

const USUAL = { api: 5005, agent: 5008, inbox: 5010, queue: 4566, postgres: 5433 };
const FLAGS: Readonly<Partial<Record<Part, string>>> = { api: '--port', agent: '--agent-port' };
const TRIES = 100;

export type Part = keyof typeof USUAL;

/** The ports of all parts, on loopback. */
export interface Ports {
  /** The port of a part is final once the part listens. */
  readonly numbers: Readonly<Record<Part, number>>;
  /** Starts a part on its port. If another process has that port, tries the next one, unless the port was requested. */
  listen<T>(part: Part, start: (port: number) => Promise<T>): Promise<T>;
}

/**
 * @param requested the ports of the command line; 0 stands for any free port
 * @throws GatewayError `port_in_use` or `port_refused` for a requested port
 */
export async function choosePorts(requested: { readonly [Name in Part]?: number | undefined }): Promise<Ports> {
  const numbers = { ...USUAL };
  const isRequested = (part: Part) => requested[part] !== undefined;
  const parts = Object.keys(USUAL) as Part[];
  for (const part of parts.filter(isRequested)) {
    const place = { port: requested[part]!, bind: LOOPBACK, setting: 'omit the flag to use the next free port', flag: FLAGS[part] ?? '' };
    numbers[part] = await tryPort(requested[part]!).catch((error: unknown) => {
      throw explainListenError(error, place);
    });
  }
  const reserved = parts.filter(isRequested).map((part) => numbers[part]);
  return {
    numbers,
    async listen(part, start) {
      if (isRequested(part)) return start(numbers[part]);
      for (let tries = 0; tries < TRIES; tries++, numbers[part]++) {
        if (reserved.includes(numbers[part])) continue;
        try {
          await tryPort(numbers[part]);
          return await start(numbers[part]);
        } catch (error) {
          if (!isGatewayError(error, 'port_in_use') && (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
        }
      }
      throw new DevError(
        `none of the ports ${USUAL[part]} to ${USUAL[part] + TRIES - 1} is free on ${LOOPBACK}`,
        'stop a process that listens there',
      );
    },
  };
}

/** Listens on the port for a moment. Returns the port; rejects with the error of `listen`. */
function tryPort(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ port, host: LOOPBACK, exclusive: true }, () => {
      const { port: actual } = server.address() as AddressInfo;
      server.close(() => resolve(actual));
    });
  });
}
