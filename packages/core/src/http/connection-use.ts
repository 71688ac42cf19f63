import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';
import { HEAD_MAX, isPlainHead, mendedHead, otherProtocol, readHead, type Head } from './response-head.js';

/** What a connection of undici was used for. */
export interface ConnectionUse {
  /** Requests sent so far. */
  readonly requests: number;
  /** A byte came since the latest request was sent. */
  readonly hasAnswered: boolean;
  /** The part of an incomplete response head that has come; undefined if its status line is incomplete. */
  cutHead(): Head | undefined;
}

const INFORMATIONAL_MAX = 16;
const NOTHING = Buffer.alloc(0);
const HEAD_END = /\n\r?\n/;

const connections = new WeakMap<Socket, Connection>();
let latest: ConnectionUse | undefined;
subscribe('undici:client:sendHeaders', (message) => {
  latest = connections.get((message as { socket: Socket }).socket)?.begin();
});

/** The connection of the request that undici is sending, for the handler's `onBodySent`; undefined if its connector is not watched. */
export function connectionInUse(): ConnectionUse | undefined {
  return latest;
}

/**
 * A connector whose connections record their use. undici sees no informational answers (1xx) of theirs, since it ends a connection at `100 Continue`, and
 * only heads that its strict parser can read.
 */
export function watchedConnector(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(withoutRootDot(options), (...result) => {
      if (result[1]) connections.set(result[1], new Connection(result[1]));
      callback(...result);
    });
}

/** https://www.rfc-editor.org/rfc/rfc6066#section-3: a server name of TLS has no trailing dot. Servers refuse it, or show another certificate. */
function withoutRootDot(options: buildConnector.Options): buildConnector.Options {
  return options.hostname.endsWith('.') ? { ...options, servername: options.hostname.slice(0, -1) } : options;
}

class Connection implements ConnectionUse {
  requests = 0;
  hasAnswered = false;
  #isAtHead = false;
  #informational = 0;
  /** Pieces of a head whose end has not come. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** The last two of their characters: the empty line that ends a head may come in pieces. */
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

  /** Returns what undici may see of the bytes: nothing while the head is incomplete. */
  #readHead(chunk: Buffer): Buffer {
    this.hasAnswered = true;
    if (this.#heldBytes === 0 && isPlainHead(chunk)) {
      this.#isAtHead = false;
      return chunk;
    }
    for (let rest = chunk; ;) {
      // Some servers write an empty line after a body.
      while (this.#heldBytes === 0 && (rest[0] === 0x0d || rest[0] === 0x0a)) rest = rest.subarray(1);
      if (rest.length === 0) return NOTHING;
      const seen = this.#tail + rest.toString('latin1');
      const end = HEAD_END.exec(seen);
      const length = end ? end.index + end[0].length - this.#tail.length : rest.length;
      this.#held.push(rest.subarray(0, length));
      this.#heldBytes += length;
      this.#tail = seen.slice(-2);
      if (!'HTTP/'.startsWith(this.#held[0]!.toString('latin1', 0, 5))) return this.#refuse(otherProtocol(this.#held[0]!));
      if (this.#heldBytes > HEAD_MAX) return this.#refuse(`its headers are larger than ${HEAD_MAX / 1024} KB`);
      if (!end) return NOTHING;
      const bytes = Buffer.concat(this.#held);
      const head = readHead(bytes.toString('latin1'));
      if (!head) return this.#refuse(otherProtocol(bytes));
      this.#held = [];
      this.#heldBytes = 0;
      this.#tail = '';
      rest = rest.subarray(length);
      // https://www.rfc-editor.org/rfc/rfc9110#name-informational-1xx: a client may get any number of them, unasked.
      if (head.status >= 200) {
        this.#isAtHead = false;
        return Buffer.concat([isPlainHead(bytes) ? bytes : mendedHead(head), rest]);
      }
      if (++this.#informational > INFORMATIONAL_MAX) return this.#refuse(`more than ${INFORMATIONAL_MAX} informational answers (1xx)`);
    }
  }

  #refuse(reason: string): Buffer {
    this.socket.destroy(new Error(reason));
    return NOTHING;
  }
}
