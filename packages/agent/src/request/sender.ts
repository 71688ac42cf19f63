import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { Agent, type Dispatcher } from 'undici';
import { withAuthorities } from '@gateway/core/http';
import { proxyDispatcher, type RequestDispatcher } from '@gateway/core/http';
import { addressGuard, checkHost, guardedConnector } from './ssrf-guard.js';
import { failureOf, redirectFailure, timeoutFailure, type Failure } from './classify-error.js';

/** The result of one request. */
export interface Answer {
  /** Null: no response. */
  readonly status: number | null;
  readonly headers: Readonly<Record<string, string>>;
  /** Decompressed, cut to the limit. */
  readonly body: string;
  /** Null: the response is complete, whatever its status, and no redirect. */
  readonly failure: Failure | null;
}

export interface Request {
  readonly url: string;
  /** Names and values in turn. */
  readonly headers: string[];
  readonly body: Buffer;
  readonly timeoutMs: number;
}

export interface SenderOptions {
  readonly allowedNetworks: readonly string[];
  readonly maxResponseBytes: number;
  /** URL of the HTTP proxy that all requests go through. */
  readonly proxy?: string | undefined;
  /** PEM file of additional certificate authorities. */
  readonly caFile?: string | undefined;
}

/** Bytes read past the limit so that the connection can be reused; a longer response closes its connection. */
const DRAIN_BYTES = 256 * 1024;
const KEEP_ALIVE_MS = 30_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** Sends requests over pools of kept-alive connections. Redirects are not followed. */
export class Sender {
  readonly #dispatcher: RequestDispatcher;
  readonly #maxResponseBytes: number;

  /** @throws GatewayError `tls_file` when the file of authorities cannot be used */
  constructor({ allowedNetworks, maxResponseBytes, proxy, caFile }: SenderOptions) {
    this.#maxResponseBytes = maxResponseBytes;
    const mayReach = addressGuard(allowedNetworks);
    const secureContext = caFile === undefined ? undefined : withAuthorities(caFile);
    const pooling = {
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // The timer of the exchange covers the whole request.
      headersTimeout: 0,
      bodyTimeout: 0,
    };
    this.#dispatcher =
      proxy === undefined
        ? new Agent({ ...pooling, connect: guardedConnector(mayReach, CONNECT_TIMEOUT_MS, secureContext) })
        : proxyDispatcher({
            url: proxy,
            check: (host) => checkHost(host, mayReach),
            secureContext,
            connectTimeoutMs: CONNECT_TIMEOUT_MS,
            pooling,
          });
  }

  /** Sends one POST and calls `done` exactly once, perhaps before this returns. Never throws. */
  send(request: Request, done: (answer: Answer) => void): void {
    let url: URL;
    try {
      url = new URL(request.url);
    } catch {
      done(unsendable(`The endpoint's URL cannot be read.`));
      return;
    }
    const exchange = new Exchange({ place: url.host, timeoutMs: request.timeoutMs, maxBytes: this.#maxResponseBytes }, done);
    try {
      this.#dispatcher.dispatch(
        { origin: url.origin, path: url.pathname + url.search, method: 'POST', headers: request.headers, body: request.body },
        exchange,
      );
    } catch (error) {
      exchange.onError(error as Error);
    }
  }

  async close(): Promise<void> {
    await this.#dispatcher.destroy();
  }
}

/** One request and its response, as a handler of undici. */
class Exchange implements Dispatcher.DispatchHandler {
  /** Host and port of the endpoint. */
  readonly #place: string;
  readonly #maxBytes: number;
  readonly #done: (answer: Answer) => void;
  readonly #timer: NodeJS.Timeout;
  #abort: ((reason?: Error) => void) | undefined;
  #settled = false;
  #status: number | null = null;
  #headers: Record<string, string> = {};
  readonly #chunks: Buffer[] = [];
  #kept = 0;
  #read = 0;
  /** The announced length exceeds what is read: the connection is closed anyway. */
  #isEndless = false;

  constructor({ place, timeoutMs, maxBytes }: { place: string; timeoutMs: number; maxBytes: number }, done: (answer: Answer) => void) {
    this.#place = place;
    this.#maxBytes = maxBytes;
    this.#done = done;
    this.#timer = setTimeout(() => {
      this.#settle(timeoutFailure(timeoutMs, this.#status));
      this.#abort?.();
    }, timeoutMs);
  }

  onConnect(abort: (reason?: Error) => void): void {
    if (this.#settled) abort();
    else this.#abort = abort;
  }

  onHeaders(status: number, rawHeaders: Buffer[]): boolean {
    // 1xx: the response is still to come.
    if (status < 200) return true;
    this.#status = status;
    for (let k = 0; k + 1 < rawHeaders.length; k += 2) {
      this.#headers[(rawHeaders[k] as Buffer).toString('latin1').toLowerCase()] = (rawHeaders[k + 1] as Buffer).toString('latin1');
    }
    this.#isEndless = Number(this.#headers['content-length']) > this.#maxBytes + DRAIN_BYTES;
    return true;
  }

  onData(chunk: Buffer): boolean {
    this.#read += chunk.length;
    if (this.#kept < this.#maxBytes) {
      const piece = chunk.subarray(0, this.#maxBytes - this.#kept);
      this.#chunks.push(piece);
      this.#kept += piece.length;
    }
    if (this.#read > this.#maxBytes + (this.#isEndless ? 0 : DRAIN_BYTES)) {
      this.#settle(null);
      this.#abort?.();
    }
    return true;
  }

  onComplete(): void {
    this.#settle(null);
  }

  onError(error: Error): void {
    this.#settle(failureOf(error, { place: this.#place, status: this.#status }));
  }

  #settle(broken: Failure | null): void {
    if (this.#settled) return;
    this.#settled = true;
    clearTimeout(this.#timer);
    const failure = broken ?? redirectFailure(this.#status, this.#headers);
    // https://www.rfc-editor.org/rfc/rfc9110#name-content-codings: their names have no case.
    const encoding = this.#headers['content-encoding']?.trim().toLowerCase();
    if (!encoding || encoding === 'identity' || this.#kept === 0) {
      this.#done({ status: this.#status, headers: this.#headers, body: Buffer.concat(this.#chunks).toString('utf8'), failure });
      return;
    }
    decompress(Buffer.concat(this.#chunks), encoding, this.#maxBytes, (body) =>
      this.#done({ status: this.#status, headers: this.#headers, body, failure }),
    );
  }
}

/** Decompresses up to the limit; a truncated or broken body gives what can be read of it. */
function decompress(compressed: Buffer, encoding: string, maxBytes: number, done: (text: string) => void): void {
  const stream =
    encoding === 'gzip' || encoding === 'x-gzip'
      ? createGunzip({ finishFlush: constants.Z_SYNC_FLUSH })
      : encoding === 'deflate'
        ? createInflate({ finishFlush: constants.Z_SYNC_FLUSH })
        : encoding === 'br'
          ? createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH })
          : undefined;
  if (!stream) {
    done(`(${compressed.length} bytes with content-encoding ${encoding})`);
    return;
  }
  const chunks: Buffer[] = [];
  let kept = 0;
  const end = () => {
    stream.removeAllListeners('data').removeAllListeners('end');
    stream.destroy();
    done(Buffer.concat(chunks).subarray(0, maxBytes).toString('utf8'));
  };
  stream.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    if ((kept += chunk.length) >= maxBytes) end();
  });
  stream.once('end', end);
  let failed = false;
  stream.on('error', () => {
    if (!failed && kept < maxBytes) end();
    failed = true;
  });
  stream.end(compressed);
}

export function unsendable(message: string): Answer {
  return { status: null, headers: {}, body: '', failure: { class: 'unsendable', message } };
}
