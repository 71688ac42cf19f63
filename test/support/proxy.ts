import net from 'node:net';
import { loopback } from './ports.js';

/** A TCP proxy on loopback, to take a service away without touching it. */
export interface Proxy {
  readonly port: number;
  /** Connections that are open now. */
  readonly connections: number;
  /** Ends every connection and refuses new ones, as a server that was stopped. */
  cut(): void;
  /** Passes nothing on and answers nothing, as a network that lost its way; connections stay open. */
  freeze(): void;
  /** The same for the connections that are open now: new ones work, as after the failover to another server. */
  freezeOpen(): void;
  /** Ends what `cut` or `freeze` began. Connections that were frozen are ended: what they had sent may be lost. */
  restore(): void;
  /**
   * Lets the next request that contains the text through, and ends its connection in place of passing the answer on: the server has done what it was asked
   * to, and the client does not know.
   * @returns what resolves when that has happened
   */
  loseAnswer(text: string): Promise<void>;
  close(): Promise<void>;
}

interface Pair {
  readonly client: net.Socket;
  readonly server: net.Socket;
  frozen: boolean;
  /** Set when the answer of what was just sent is to be lost. */
  lose: (() => void) | undefined;
}

/**
 * Starts a proxy in front of a server on loopback.
 * @param options.rewrite changes what the server answers, for one that tells its clients where it is
 */
export async function proxy(
  target: { port: number; host?: string },
  { rewrite = (bytes) => bytes }: { rewrite?: (bytes: Buffer, port: number) => Buffer } = {},
): Promise<Proxy> {
  let state: 'open' | 'cut' | 'frozen' = 'open';
  const pairs = new Set<Pair>();
  const losses: { readonly text: string; readonly lost: () => void }[] = [];

  const end = (pair: Pair) => {
    pairs.delete(pair);
    pair.client.destroy();
    pair.server.destroy();
  };
  const listener = net.createServer((client) => {
    if (state === 'cut') return void client.destroy();
    const pair: Pair = {
      client,
      server: net.connect({ port: target.port, host: target.host ?? '127.0.0.1' }),
      frozen: false,
      lose: undefined,
    };
    pairs.add(pair);
    for (const socket of [pair.client, pair.server]) {
      socket.setNoDelay(true);
      socket.on('error', () => end(pair));
      socket.on('close', () => end(pair));
    }
    pair.client.on('data', (bytes) => {
      if (state === 'frozen' || pair.frozen) return;
      const at = losses.findIndex(({ text }) => bytes.includes(text));
      if (at >= 0) pair.lose = losses.splice(at, 1)[0]?.lost;
      pair.server.write(bytes);
    });
    pair.server.on('data', (bytes) => {
      if (state === 'frozen' || pair.frozen) return;
      if (!pair.lose) return void pair.client.write(rewrite(bytes, port));
      end(pair);
      pair.lose();
    });
  });
  const port = await loopback(listener);

  const endAll = () => {
    for (const pair of pairs) end(pair);
  };
  return {
    port,
    get connections() {
      return pairs.size;
    },
    cut: () => {
      state = 'cut';
      endAll();
    },
    freeze: () => {
      state = 'frozen';
    },
    freezeOpen: () => {
      for (const pair of pairs) pair.frozen = true;
    },
    restore: () => {
      if (state === 'frozen') endAll();
      state = 'open';
    },
    loseAnswer: (text) => new Promise((resolve) => losses.push({ text, lost: resolve })),
    close: async () => {
      const closed = new Promise((resolve) => listener.close(resolve));
      endAll();
      await closed;
    },
  };
}
