import net from 'node:net';
import { loopback } from './ports.js';

/** A TCP proxy on loopback, which makes a service unreachable without touching it. */
export interface Proxy {
  readonly port: number;
  readonly connections: number;
  /** Ends every connection and refuses new ones, like a stopped server. */
  cut(): void;
  /** Forwards nothing on any connection, like a network partition; connections remain open. */
  freeze(): void;
  /** Freezes only the open connections: new ones work, as after a failover to another server. */
  freezeOpen(): void;
  /** Undoes `cut` and `freeze`. Ends frozen connections: data sent on them can be lost. */
  restore(): void;
  /**
   * Forwards the next request that contains the text, and ends its connection instead of forwarding
   * the response: the server has executed the request, and the client does not know.
   * @returns resolves when that has happened
   */
  loseAnswer(text: string): Promise<void>;
  close(): Promise<void>;
}

interface Pair {
  readonly client: net.Socket;
  readonly server: net.Socket;
  frozen: boolean;
  /** Set while the next response is to be lost. */
  lose: (() => void) | undefined;
}

/**
 * Starts a proxy to a server on loopback.
 * @param options.rewrite modifies responses, for a server that advertises its address
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
