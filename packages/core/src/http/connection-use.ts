import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';
import {
  HEAD_MAX,
  isPlainHead,
  mendedHead,
  otherProtocol,
  readHead,
  type Head,
} from './response-head.js';

export interface ConnectionUse {
  readonly requests: number;
  /** A byte has arrived since the latest request. */
  readonly hasAnswered: boolean;
  /** Undefined if the status line is incomplete or informational (1xx). */
  cutHead(): Head | undefined;
}

/**
 * An older connection closes with its next response, so that requests follow a name that has moved.
 * Servers may announce longer timeouts.
 */
const AGE_MAX_MS = 120_000;
const INFORMATIONAL_MAX = 16;
const NOTHING = Buffer.alloc(0);
const HEAD_END = /\n\r?\n/;

const connections = new WeakMap<Socket, WatchedConnection>();
let latest: ConnectionUse | undefined;
subscribe('undici:client:sendHeaders', (message) => {
  latest = connections.get((message as { socket: Socket }).socket)?.begin();
});

/**
 * The connection on which undici sent the latest headers. Call it in `onBodySent`. Undefined if the
 * connector is not watched.
 */
export function connectionInUse(): ConnectionUse | undefined {
  return latest;
}

/**
 * Records the use of connections and rewrites response heads. Informational responses (1xx) are
 * removed, because undici closes the connection on `100 Continue`. Other heads are rewritten for
 * undici's strict parser. Old connections are closed after a response.
 */
export function watchedConnector(
  connect: buildConnector.connector,
  ageMaxMs = AGE_MAX_MS,
): buildConnector.connector {
  return (options, callback) =>
    connect(withoutRootDot(options), (...result) => {
      if (result[1]) connections.set(result[1], new WatchedConnection(result[1], ageMaxMs));
      callback(...result);
    });
}

/**
 * SNI does not allow the trailing dot of a host name
 * (https://www.rfc-editor.org/rfc/rfc6066#section-3). Servers would reject the name or send another
 * certificate.
 */
function withoutRootDot(options: buildConnector.Options): buildConnector.Options {
  const host = (options.host ?? options.hostname).replace(/:\d+$/, '');
  return host.endsWith('.') ? { ...options, servername: host.slice(0, -1) } : options;
}

class WatchedConnection implements ConnectionUse {
  requests = 0;
  hasAnswered = false;
  #isAtHead = false;
  #informational = 0;
  #head: Buffer[] = [];
  #headBytes = 0;
  /** The last two characters received, because the end of a head may be split across two chunks. */
  #tail = '';

  /** Differs between connections, so that those opened together are not closed together. */
  readonly #oldAtMs: number;

  constructor(
    private readonly socket: Socket,
    ageMaxMs: number,
  ) {
    this.#oldAtMs = performance.now() + ageMaxMs * (0.75 + Math.random() / 4);
    const read = socket.read.bind(socket) as () => Buffer | null;
    socket.read = () => {
      for (let chunk; (chunk = read()) !== null;) {
        const rest = this.#isAtHead ? this.#readHead(chunk) : chunk;
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

  cutHead(): Head | undefined {
    const head = readHead(Buffer.concat(this.#head).toString('latin1'));
    return head && head.status >= 200 ? head : undefined;
  }

  /** The bytes for undici; none while the head is incomplete. */
  #readHead(chunk: Buffer): Buffer {
    this.hasAnswered = true;
    const isOld = performance.now() > this.#oldAtMs;
    if (this.#headBytes === 0 && !isOld && isPlainHead(chunk)) {
      this.#isAtHead = false;
      return chunk;
    }
    for (let rest = chunk; ;) {
      // Skip the empty line that some servers send after a body.
      while (this.#headBytes === 0 && (rest[0] === 0x0d || rest[0] === 0x0a))
        rest = rest.subarray(1);
      if (rest.length === 0) return NOTHING;
      const seen = this.#tail + rest.toString('latin1');
      const end = HEAD_END.exec(seen);
      const length = end ? end.index + end[0].length - this.#tail.length : rest.length;
      this.#head.push(rest.subarray(0, length));
      this.#headBytes += length;
      this.#tail = seen.slice(-2);
      if (!'HTTP/'.startsWith(this.#head[0]!.toString('latin1', 0, 5)))
        return this.#refuse(otherProtocol(this.#head[0]!));
      if (this.#headBytes > HEAD_MAX)
        return this.#refuse(`its headers are larger than ${HEAD_MAX / 1024} KB`);
      if (!end) return NOTHING;
      const bytes = Buffer.concat(this.#head);
      const head = readHead(bytes.toString('latin1'));
      if (!head) return this.#refuse(otherProtocol(bytes));
      this.#head = [];
      this.#headBytes = 0;
      this.#tail = '';
      rest = rest.subarray(length);
      // Any number of informational responses may precede the final one; skip them, up to a limit:
      // https://www.rfc-editor.org/rfc/rfc9110#name-informational-1xx
      if (head.status >= 200) {
        this.#isAtHead = false;
        return Buffer.concat([!isOld && isPlainHead(bytes) ? bytes : mendedHead(head), rest]);
      }
      if (++this.#informational > INFORMATIONAL_MAX)
        return this.#refuse(`more than ${INFORMATIONAL_MAX} informational answers (1xx)`);
    }
  }

  #refuse(reason: string): Buffer {
    this.socket.destroy(new Error(reason));
    return NOTHING;
  }
}
