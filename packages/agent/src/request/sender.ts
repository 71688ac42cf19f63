import { networkReason, tlsReason } from '@gateway/core/errors';
import {
  connectionInUse,
  type ConnectionUse,
  withAuthorities,
  proxyDispatcher,
  type RequestDispatcher,
  ProxyError,
} from '@gateway/core/http';
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { Agent, type Dispatcher } from 'undici';
import type { FailureClass } from '../model/delivery.js';
import { addressGuard, checkHost, guardedConnector, RefusedAddressError } from './ssrf-guard.js';

export interface Answer {
  readonly status: number | null;
  readonly headers: Readonly<Record<string, string>>;
  /** Decompressed, cut to the limit. */
  readonly body: string;
  /** Null: the response is complete, whatever its status, and no redirect. */
  readonly failure: Failure | null;
  /** The request went out on a reused connection that ended without a byte: it was probably closed while idle, which says nothing about the endpoint. */
  readonly isIdleLoss?: boolean;
}

export interface Request {
  readonly url: string;
  readonly headers: string[];
  readonly body: Buffer;
  readonly timeoutMs: number;
}

export interface SenderOptions {
  readonly allowedNetworks: readonly string[];
  readonly maxResponseBytes: number;
  readonly proxy?: string | undefined;
  readonly caFile?: string | undefined;
}

/** Bytes read past the limit so that the connection can be reused; a longer response closes its connection. */
const DRAIN_BYTES = 256 * 1024;
const KEEP_ALIVE_MS = 30_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** Sends requests over pools of kept-alive connections. Redirects are not followed. */
export class Sender {
  readonly #dispatcher: RequestDispatcher;
  /** @throws GatewayError `tls_file` when the file of authorities cannot be used */
  constructor(private readonly options: SenderOptions) {
    const { allowedNetworks, proxy, caFile } = options;
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
    const exchange = new Exchange(url.host, this.options.maxResponseBytes, request.timeoutMs, done);
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

class Exchange implements Dispatcher.DispatchHandler {
  readonly #timer: NodeJS.Timeout;
  #abort: ((reason?: Error) => void) | undefined;
  #settled = false;
  #status: number | null = null;
  #headers: Record<string, string> = {};
  readonly #chunks: Buffer[] = [];
  #kept = 0;
  #read = 0;
  #isEndless = false;
  #connection: ConnectionUse | undefined;

  /** @param place host and port of the endpoint */
  constructor(
    private readonly place: string,
    private readonly maxBytes: number,
    timeoutMs: number,
    private readonly done: (answer: Answer) => void,
  ) {
    this.#timer = setTimeout(() => {
      this.#settle(timeoutFailure(timeoutMs, this.#status));
      this.#abort?.();
    }, timeoutMs);
  }

  onConnect(abort: (reason?: Error) => void): void {
    if (this.#settled) abort();
    else this.#abort = abort;
  }

  onBodySent(): void {
    this.#connection = connectionInUse();
  }

  onHeaders(status: number, rawHeaders: Buffer[]): boolean {
    this.#status = status;
    for (let k = 0; k + 1 < rawHeaders.length; k += 2) {
      this.#headers[(rawHeaders[k] as Buffer).toString('latin1').toLowerCase()] = (rawHeaders[k + 1] as Buffer).toString('latin1');
    }
    this.#isEndless = Number(this.#headers['content-length']) > this.maxBytes + DRAIN_BYTES;
    return true;
  }

  onData(chunk: Buffer): boolean {
    this.#read += chunk.length;
    if (this.#kept < this.maxBytes) {
      const piece = chunk.subarray(0, this.maxBytes - this.#kept);
      this.#chunks.push(piece);
      this.#kept += piece.length;
    }
    if (this.#read > this.maxBytes + (this.#isEndless ? 0 : DRAIN_BYTES)) {
      this.#settle(null);
      this.#abort?.();
    }
    return true;
  }

  onComplete(): void {
    this.#settle(null);
  }

  onError(error: Error): void {
    const failure = failureOf(error, { place: this.place, status: this.#status });
    const { requests, hasAnswered } = this.#connection ?? { requests: 1, hasAnswered: true };
    this.#settle(failure, failure.class === 'reset' && requests > 1 && !hasAnswered);
  }

  #settle(broken: Failure | null, isIdleLoss = false): void {
    if (this.#settled) return;
    this.#settled = true;
    clearTimeout(this.#timer);
    const failure = broken ?? redirectFailure(this.#status, this.#headers);
    // https://www.rfc-editor.org/rfc/rfc9110#name-content-codings: their names have no case.
    const encoding = this.#headers['content-encoding']?.trim().toLowerCase();
    if (!encoding || encoding === 'identity' || this.#kept === 0) {
      this.done({ status: this.#status, headers: this.#headers, body: Buffer.concat(this.#chunks).toString('utf8'), failure, isIdleLoss });
      return;
    }
    decompress(Buffer.concat(this.#chunks), encoding, this.maxBytes, (body) =>
      this.done({ status: this.#status, headers: this.#headers, body, failure }),
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

/** Returns the answer for a request that was never sent: no status, and a failure of class `unsendable`. */
export function unsendable(message: string): Answer {
  return { status: null, headers: {}, body: '', failure: { class: 'unsendable', message } };
}

export interface Failure {
  readonly class: FailureClass;
  readonly message: string;
}

/** @param at host and port of the endpoint, and the status if a response had begun */
export function failureOf(error: Error, at: { readonly place: string; readonly status: number | null }): Failure {
  const failureClass = failureClassOf(error);
  return { class: failureClass, message: sentence(failureClass, error, at) };
}

/** Returns a failure of class `timeout`. `status` is null if no response had begun. */
export function timeoutFailure(timeoutMs: number, status: number | null): Failure {
  const message =
    status === null
      ? `No complete response within ${timeoutMs} ms.`
      : `The endpoint began to answer ${status}, and its response was not complete within ${timeoutMs} ms.`;
  return { class: 'timeout', message };
}

/** Redirects are not followed: an endpoint must not choose where else a signed request goes. Null for any other answer. */
export function redirectFailure(status: number | null, headers: Readonly<Record<string, string>>): Failure | null {
  const { location } = headers;
  if (status === null || status < 300 || status > 399 || !location) return null;
  const shown = location.length > 200 ? `${location.slice(0, 200)}…` : location;
  return {
    class: 'status',
    message: `The endpoint answered ${status}, a redirect to ${shown}. Redirects are not followed: if it has moved, change its URL.`,
  };
}

function sentence(failureClass: FailureClass, error: Error, { place, status }: { place: string; status: number | null }): string {
  const { code } = error as NodeJS.ErrnoException;
  const told = error.message || code || error.name;
  switch (failureClass) {
    case 'dns':
      return `${place} cannot be looked up: ${networkReason(error) ?? told}.`;
    case 'connect':
      return `No connection to ${place}: ${code === 'UND_ERR_CONNECT_TIMEOUT' ? 'no answer in time' : (networkReason(error) ?? told)}.`;
    case 'tls':
      return `No secure connection to ${place}: ${tlsReason(error) ?? told}.`;
    case 'reset':
      return status === null
        ? `${place} closed the connection without an answer.`
        : `${place} closed the connection in the middle of its answer.`;
    case 'protocol':
      return code === 'HPE_HEADER_OVERFLOW' || code === 'UND_ERR_HEADERS_OVERFLOW'
        ? `The headers of what ${place} answers are too large.`
        : `What ${place} answers cannot be read: ${told}.`;
    case 'unsendable':
      return `The request cannot be sent: ${told}.`;
    case 'timeout':
    case 'status':
    case 'proxy':
    case 'refused_address':
      return told;
  }
}

const CONNECT_CODES = /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EADDRNOTAVAIL|EACCES|EMFILE|UND_ERR_CONNECT_TIMEOUT)$/;
const TLS_CODES = /^EPROTO$|^ERR_TLS|^ERR_SSL|CERT|SIGNATURE|ISSUER/;

function failureClassOf(error: Error): FailureClass {
  if (error instanceof RefusedAddressError) return 'refused_address';
  if (error instanceof ProxyError) return 'proxy';
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'EAI_FAIL') return 'dns';
  if (CONNECT_CODES.test(code)) return 'connect';
  if (code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET') return 'reset';
  if (code.startsWith('HPE_')) return 'protocol';
  if (code.startsWith('UND_ERR_INVALID') || error instanceof TypeError) return 'unsendable';
  if (TLS_CODES.test(code)) return 'tls';
  return error instanceof AggregateError ? 'connect' : 'protocol';
}
