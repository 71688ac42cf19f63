import { createServer } from 'node:net';
import { explainListenError } from '@gateway/core/failures';
import { Problem } from './problem.js';

export const LOOPBACK = '127.0.0.1';

const STEPS = 100;

/** The first port of loopback, from this one upward, on which nothing listens and which is not among those given away already. */
export async function portFrom(first: number, taken: ReadonlySet<number>): Promise<number> {
  for (let port = first; port < first + STEPS; port++) {
    if (!taken.has(port) && (await refusal(port)) === undefined) return port;
  }
  throw new Problem(`none of the ports ${first} to ${first + STEPS - 1} is free on ${LOOPBACK}`, {
    fix: 'stop some of what listens there',
  });
}

/**
 * A port that was asked for; 0 lets the system choose.
 *
 * @throws GatewayError `port_in_use`, `port_refused`
 */
export async function portExactly(port: number, place: { flag: string; setting: string }): Promise<number> {
  if (port === 0) return chosenBySystem();
  const error = await refusal(port);
  if (error) throw explainListenError(error, { port, bind: LOOPBACK, ...place });
  return port;
}

/** Why nobody can listen there; undefined when one can. */
function refusal(port: number): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', resolve);
    server.listen({ port, host: LOOPBACK, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

function chosenBySystem(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ port: 0, host: LOOPBACK }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
