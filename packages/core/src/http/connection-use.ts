import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';

/** What a connection of undici was used for. */
export interface ConnectionUse {
  /** Requests sent so far. */
  readonly requests: number;
  /** A byte came since the latest request was sent. */
  readonly hasAnswered: boolean;
}

const INFORMATIONAL_MAX = 16;
const INFORMATIONAL_BYTES = 16 * 1024;
/** Length of `HTTP/1.1 1`: decides whether an answer is informational. */
const DECISIVE = 10;
const NOTHING = Buffer.alloc(0);

const connections = new WeakMap<Socket, Connection>();
let latest: ConnectionUse | undefined;
subscribe('undici:client:sendHeaders', (message) => {
  latest = connections.get((message as { socket: Socket }).socket)?.begin();
});

/** The connection of the request that undici is sending, for the handler's `onBodySent`; undefined if its connector is not watched. */
export function connectionInUse(): ConnectionUse | undefined {
  return latest;
}

/** A connector whose connections record their use, and whose informational answers (1xx) undici does not see: it ends a connection at `100 Continue`. */
export function watchedConnector(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...result) => {
      if (result[1]) connections.set(result[1], new Connection(result[1]));
      callback(...result);
    });
}

class Connection implements ConnectionUse {
  requests = 0;
  hasAnswered = false;
  #isAtHead = false;
  #informational = 0;
  /** Bytes that do not tell yet whether they are an informational answer. */
  #held: Buffer = NOTHING;

  constructor(private readonly socket: Socket) {
    const read = socket.read.bind(socket) as () => Buffer | null;
    socket.read = () => {
      for (let chunk; (chunk = read()) !== null;) {
        const rest = this.#isAtHead ? this.#skipInformational(chunk) : chunk;
        if (rest.length > 0) return rest;
      }
      return null;
    };
  }

  begin(): this {
    this.requests++;
    this.hasAnswered = false;
    this.#isAtHead = true;
    this.#informational = 0;
    return this;
  }

  /** https://www.rfc-editor.org/rfc/rfc9110#name-informational-1xx: a client may get any number of them, unasked. */
  #skipInformational(chunk: Buffer): Buffer {
    this.hasAnswered = true;
    let bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = NOTHING;
    for (;;) {
      const start = bytes.toString('latin1', 0, DECISIVE);
      if (!['HTTP/1.1 1', 'HTTP/1.0 1'].some((begin) => begin.startsWith(start))) {
        this.#isAtHead = false;
        return bytes;
      }
      const end = bytes.indexOf('\r\n\r\n');
      if (end === -1 && bytes.length <= INFORMATIONAL_BYTES) {
        this.#held = bytes;
        return NOTHING;
      }
      if (end === -1 || ++this.#informational > INFORMATIONAL_MAX) {
        this.socket.destroy(new Error(`more than ${INFORMATIONAL_MAX} informational answers (1xx), or one of more than 16 KB`));
        return NOTHING;
      }
      bytes = bytes.subarray(end + 4);
    }
  }
}
