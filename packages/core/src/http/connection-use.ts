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
  /** True once the peer has sent a byte since the latest request. */
  readonly hasAnswered: boolean;
  /** Returns the head received so far, unless its status line is incomplete. */
  cutHead(): Head | undefined;
}

const INFORMATIONAL_MAX = 16;
const NOTHING = Buffer.alloc(0);
const HEAD_END = /\n\r?\n/;

const connections = new WeakMap<Socket, WatchedConnection>();
let latest: ConnectionUse | undefined;
subscribe('undici:client:sendHeaders', (message) => {
  latest = connections.get((message as { socket: Socket }).socket)?.begin();
});

/** Returns the connection in use, for `onBodySent`; undefined if its connector is not watched. */
export function connectionInUse(): ConnectionUse | undefined {
  return latest;
}

/**
 * Returns a connector whose connections record their use. undici sees no informational responses
 * (1xx), because it closes at `100 Continue`, and only heads that its strict parser accepts.
 */
export function watchedConnector(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(withoutRootDot(options), (...result) => {
      if (result[1]) connections.set(result[1], new WatchedConnection(result[1]));
      callback(...result);
    });
}

/**
 * SNI has no trailing dot (https://www.rfc-editor.org/rfc/rfc6066#section-3): servers reject it or
 * send another certificate.
 */
function withoutRootDot(options: buildConnector.Options): buildConnector.Options {
  return options.hostname.endsWith('.')
    ? { ...options, servername: options.hostname.slice(0, -1) }
    : options;
}

class WatchedConnection implements ConnectionUse {
  requests = 0;
  hasAnswered = false;
  #isAtHead = false;
  #informational = 0;
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** The last two characters: the end of a head may be split across chunks. */
  #tail = '';

  constructor(private readonly socket: Socket) {
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
    const head = readHead(Buffer.concat(this.#held).toString('latin1'));
    return head && head.status >= 200 ? head : undefined;
  }

  /** Returns the bytes for undici: none while the head is incomplete. */
  #readHead(chunk: Buffer): Buffer {
    this.hasAnswered = true;
    if (this.#heldBytes === 0 && isPlainHead(chunk)) {
      this.#isAtHead = false;
      return chunk;
    }
    for (let rest = chunk; ;) {
      // Some servers send an empty line after a body.
      while (this.#heldBytes === 0 && (rest[0] === 0x0d || rest[0] === 0x0a))
        rest = rest.subarray(1);
      if (rest.length === 0) return NOTHING;
      const seen = this.#tail + rest.toString('latin1');
      const end = HEAD_END.exec(seen);
      const length = end ? end.index + end[0].length - this.#tail.length : rest.length;
      this.#held.push(rest.subarray(0, length));
      this.#heldBytes += length;
      this.#tail = seen.slice(-2);
      if (!'HTTP/'.startsWith(this.#held[0]!.toString('latin1', 0, 5)))
        return this.#refuse(otherProtocol(this.#held[0]!));
      if (this.#heldBytes > HEAD_MAX)
        return this.#refuse(`its headers are larger than ${HEAD_MAX / 1024} KB`);
      if (!end) return NOTHING;
      const bytes = Buffer.concat(this.#held);
      const head = readHead(bytes.toString('latin1'));
      if (!head) return this.#refuse(otherProtocol(bytes));
      this.#held = [];
      this.#heldBytes = 0;
      this.#tail = '';
      rest = rest.subarray(length);
      // Any number is allowed: https://www.rfc-editor.org/rfc/rfc9110#name-informational-1xx
      if (head.status >= 200) {
        this.#isAtHead = false;
        return Buffer.concat([isPlainHead(bytes) ? bytes : mendedHead(head), rest]);
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
