import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { authority } from './authority.js';
import type { Counted, Ports } from './hostile-server.js';
import { within } from './until.js';

/** An endpoint that tries to harm its neighbours. */
export interface HostileEndpoint {
  readonly name: string;
  readonly url: string;
  /** The recorded error class and sentence of its attempts; null if its deliveries succeed. */
  readonly failure: { readonly class: string; readonly sentence: RegExp } | null;
  /** Some of its requests are delivered; the others fail with `failure`. */
  readonly sometimes?: true;
}

/** Nine hostile endpoints and the agent's settings for them. */
export interface HostileEndpoints {
  readonly all: readonly HostileEndpoint[];
  /** Environment of the agent: resolves the names of two endpoints. */
  readonly env: Readonly<Record<string, string>>;
  /** PEM file of the expired certificate's authority. */
  readonly caFile: string;
  /** The only private network that the agent is allowed to reach. */
  readonly network: string;
  open(endpoint: HostileEndpoint): Promise<number>;
  /**
   * Connections to the address that a changing name resolves to later; the agent must never open
   * one.
   */
  trapped(): Promise<number>;
  close(): void;
}

const START_MS = 30_000;

/** Starts the endpoints on loopback, in a separate process. */
export async function hostileEndpoints(): Promise<HostileEndpoints> {
  const ca = authority();
  const { certificate, key } = ca.issue('expired', ['DNS:localhost'], { expired: true });
  const server = fork(fileURLToPath(import.meta.resolve('./hostile-server.js')), [
    certificate,
    key,
  ]);
  const told = async <T>(what: string) =>
    ((await within(once(server, 'message'), START_MS, what)) as [T])[0];
  const ports = await told<Ports>('the hostile endpoints');
  const counted = async () => {
    const answer = told<Counted>('the counts of the hostile endpoints');
    server.send('count');
    return answer;
  };
  const at = (port: number) => `http://127.0.0.1:${port}/`;
  return {
    all: [
      {
        name: 'hangs',
        url: at(ports.hangs),
        failure: { class: 'timeout', sentence: /^No complete response within \d+ ms\.$/ },
      },
      { name: 'trickles a byte a second', url: at(ports.trickles), failure: null },
      {
        name: 'resets the connection',
        url: at(ports.resets),
        failure: {
          class: 'reset',
          sentence: /^127\.0\.0\.1:\d+ closed the connection without an answer\.$/,
        },
      },
      { name: 'answers a gigabyte', url: at(ports.gigabyte), failure: null },
      { name: 'answers a gzip bomb', url: at(ports.bomb), failure: null },
      {
        name: 'redirects to the metadata address',
        url: at(ports.redirects),
        failure: {
          class: 'status',
          sentence:
            /^The endpoint answered 302, a redirect to http:\/\/169\.254\.169\.254\/\S+\. Redirects are not followed/,
        },
      },
      {
        name: 'has a name of a private address',
        url: 'http://private.test/',
        failure: {
          class: 'refused_address',
          sentence:
            /^private\.test resolves to 10\.0\.0\.7, which is in a private or reserved network\./,
        },
      },
      {
        name: 'has a name that changes its mind',
        url: `http://rebind.test:${ports.changing}/`,
        failure: {
          class: 'refused_address',
          sentence:
            /^rebind\.test resolves to 127\.0\.0\.2, which is in a private or reserved network\./,
        },
        sometimes: true,
      },
      {
        name: 'has an expired certificate',
        url: `https://localhost:${ports.expired}/`,
        failure: {
          class: 'tls',
          sentence: /^No secure connection to localhost:\d+: its certificate has expired\.$/,
        },
      },
    ],
    env: {
      NODE_OPTIONS: `--import=${new URL('names.mjs', import.meta.url).href}`,
      TEST_NAMES: JSON.stringify({
        'private.test': [['10.0.0.7']],
        'rebind.test': [['127.0.0.1'], ['127.0.0.2']],
      }),
    },
    caFile: ca.file,
    network: '127.0.0.1/32',
    open: async ({ url }) => (await counted()).open[Number(new URL(url).port)] ?? 0,
    trapped: async () => (await counted()).trapped,
    close: () => {
      server.disconnect();
      ca.close();
    },
  };
}
