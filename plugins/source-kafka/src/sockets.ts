import net from 'node:net';
import tls from 'node:tls';
import type { ISocketFactory } from 'kafkajs';

const KEEP_ALIVE_MS = 10_000;

/**
 * Opens the sockets of one kafkajs client and remembers them, because kafkajs itself cannot be made to let go: its `disconnect` waits for answers
 * that a dead broker never gives.
 */
export class Sockets {
  readonly #open = new Set<net.Socket>();
  #closed = false;

  readonly factory: ISocketFactory = ({ host, port, ssl, onConnect }) => {
    if (this.#closed) throw new Error('the source was closed');
    const socket = ssl
      ? tls.connect({ host, port, ...(net.isIP(host) === 0 && { servername: host }), ...ssl }, onConnect)
      : net.connect({ host, port }, onConnect);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    return socket;
  };

  /** Cuts what is still open, and opens no more. The error makes kafkajs reject its pending requests and drop their timers. */
  destroy(): void {
    this.#closed = true;
    for (const socket of this.#open) socket.destroy(new Error('the source was closed'));
  }
}
