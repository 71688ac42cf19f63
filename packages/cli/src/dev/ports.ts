import { createServer } from 'node:net';
import { explainListenError } from '@gateway/core/failures';
import { Problem } from './problem.js';

export const LOOPBACK = '127.0.0.1';

const STEPS = 100;

/** A port for each part, all on loopback. */
export interface Ports {
  readonly api: number;
  readonly agent: number;
  readonly inbox: number;
  readonly queue: number;
  readonly postgres: number;
}

/**
 * The ports of this start: those that were asked for, and for the others the first free one from the usual upward.
 *
 * @throws GatewayError `port_in_use` for one that was asked for
 */
export async function choosePorts({ api, agent }: { api: number | undefined; agent: number | undefined }): Promise<Ports> {
  const taken = new Set<number>();
  const take = async (asked: number | undefined, usual: number, flag = ''): Promise<number> => {
    const port = asked === undefined ? await portFrom(usual, taken) : await portExactly(asked, flag);
    taken.add(port);
    return port;
  };
  const asked = { api: api === undefined ? api : await take(api, 0, '--port'), agent: agent === undefined ? agent : await take(agent, 0, '--agent-port') };
  return {
    api: asked.api ?? (await take(undefined, 5005)),
    agent: asked.agent ?? (await take(undefined, 5008)),
    inbox: await take(undefined, 5010),
    queue: await take(undefined, 4566),
    postgres: await take(undefined, 5433),
  };
}

/** The first port of loopback, from this one upward, on which nothing listens and which is not among those given away already. */
async function portFrom(first: number, taken: ReadonlySet<number>): Promise<number> {
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
async function portExactly(port: number, flag: string): Promise<number> {
  if (port === 0) return chosenBySystem();
  const error = await refusal(port);
  if (error) throw explainListenError(error, { port, bind: LOOPBACK, setting: 'leave the flag away to have one found', flag });
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
