import {
  addressGuard,
  authoritiesWith,
  checkHost,
  connectionInUse,
  dispatcherOf,
  guardedConnector,
  LookupError,
  LookupsBusyError,
  Names,
  proxyExceptions,
  shortageOf,
  withAuthorities,
  type ConnectionUse,
  type RequestDispatcher,
} from '@gateway/core/http';
import type { TokenBuckets } from '@gateway/core/process';
import type { SecureContext } from 'node:tls';
import type { Dispatcher } from 'undici';
import type { Shortage } from '../../model/destination.js';
import { CertifiedPools, type IdentifiedCertificate } from './certified-pools.js';
import {
  failureOf,
  proxyRemark,
  redirectFailure,
  timeoutFailure,
  tlsRemark,
  wantOf,
  type RequestFailure,
} from './failure.js';
import { bodyText, decompress, headerText } from './response-body.js';

export interface RequestResult {
  readonly status: number | null;
  readonly headers: Readonly<Record<string, string>>;
  /** The response body, decompressed and truncated to the limit. */
  readonly body: string;
  /** Null if the endpoint responded with any status except a redirect. */
  readonly failure: RequestFailure | null;
  /** A remark for the user. The response status still counts. */
  readonly remark?: string | undefined;
  /** Whether a reused connection, probably closed while idle, ended before any response byte. */
  readonly isIdleLoss?: boolean;
  /** Why nothing was sent, if not for a fault of the endpoint. */
  readonly unsent?: 'lookup' | 'shortage' | 'unreadable';
}

export interface EndpointRequest {
  readonly projectId: string;
  readonly url: string;
  readonly headers: string[];
  readonly body: Buffer;
  readonly timeoutMs: number;
  readonly certificate?: IdentifiedCertificate | undefined;
}

/** A parsed URL. Its parts are cached, because the getters of `URL` create new strings. */
interface RequestTarget {
  readonly url: URL;
  readonly origin: string;
  readonly path: string;
}

/** The number of cached URLs above which the cache is cleared. */
const TARGETS_MAX = 1_000;

export interface RequestSenderOptions {
  readonly allowedNetworks: readonly string[];
  readonly maxResponseBytes: number;
  readonly lookupsPerProject: number;
  readonly proxy?: string | undefined;
  readonly noProxy?: readonly string[] | undefined;
  readonly caFile?: string | undefined;
  readonly connectionAgeMs?: number;
}

/** Bytes read past the limit to keep the connection reusable. A longer response closes it. */
const DRAIN_BYTES = 256 * 1024;
/** Always kept of a response body. */
const SHORT_BYTES = 1_000;
const KEEP_ALIVE_MS = 30_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** How long a shortage is reported after a request that it prevented. */
const SHORT_MS = 30_000;

export class RequestSender {
  readonly #dispatcher: RequestDispatcher;
  readonly #names: Names;
  readonly #certified: CertifiedPools;
  readonly #parts: ExchangeParts;
  readonly #targets = new Map<string, RequestTarget>();
  #shortage: (Shortage & { untilMs: number }) | undefined;

  /**
   * Creates the connection pools. Connections are opened on demand.
   *
   * @throws GatewayError `tls_file` if the CA file cannot be used
   */
  constructor(options: RequestSenderOptions) {
    const { allowedNetworks, lookupsPerProject, proxy, noProxy, caFile, connectionAgeMs } = options;
    const isDirect = proxyExceptions(noProxy ?? []);
    const names = new Names(lookupsPerProject);
    this.#parts = {
      maxBytes: options.maxResponseBytes,
      names,
      isShort: (reason) => this.#isShort(reason),
      // The proxy whose answers look like those of the endpoint.
      proxyOf: (url) =>
        proxy === undefined || url.protocol === 'https:' || isDirect(url)
          ? undefined
          : new URL(proxy).host,
    };
    const find = (name: string) => names.addresses(name);
    const mayReach = addressGuard(allowedNetworks);
    const secureContext = caFile === undefined ? undefined : withAuthorities(caFile);
    const pooling = {
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Disabled, because the exchange's timer covers the whole request.
      headersTimeout: 0,
      bodyTimeout: 0,
    };
    this.#names = names;
    const open = (hostContext: SecureContext | undefined) =>
      dispatcherOf({
        proxy,
        noProxy,
        direct: guardedConnector(mayReach, find, {
          connectTimeoutMs: CONNECT_TIMEOUT_MS,
          secureContext: hostContext,
          ageMaxMs: connectionAgeMs,
        }),
        check: (host) => checkHost(host, mayReach, find),
        secureContext,
        hostContext,
        connectTimeoutMs: CONNECT_TIMEOUT_MS,
        pooling,
      });
    this.#dispatcher = open(secureContext);
    this.#certified = new CertifiedPools({
      open,
      authorities: caFile === undefined ? undefined : authoritiesWith(caFile),
    });
  }

  get shortage(): Shortage | undefined {
    return this.#shortage && performance.now() < this.#shortage.untilMs
      ? this.#shortage
      : undefined;
  }

  #isShort(reason: string): void {
    const untilMs = performance.now() + SHORT_MS;
    if (this.shortage?.reason === reason) this.#shortage!.untilMs = untilMs;
    else this.#shortage = { reason, since: new Date(), untilMs };
  }

  /**
   * Sends one POST request and calls `done` exactly once, possibly before returning. Never throws.
   *
   * @param responsePace tracks response bytes; while the project exceeds its pace, only the first
   *   1,000 bytes of a response are kept
   */
  send(
    request: EndpointRequest,
    done: (answer: RequestResult) => void,
    responsePace?: TokenBuckets,
  ): void {
    const target = this.#targetOf(request.url);
    if (!target) return done(unsendable(`The endpoint's URL cannot be read.`));
    const { projectId, headers, body, certificate } = request;
    const { url, origin, path } = target;
    const exchange = new Exchange(this.#parts, url, request, done, responsePace);
    try {
      // `dispatch` opens new connections synchronously, so the DNS lookup counts toward this
      // project's limit.
      const dispatcher = certificate ? this.#certified.of(certificate) : this.#dispatcher;
      this.#names.askFor(projectId, () => {
        dispatcher.dispatch({ origin, path, method: 'POST', headers, body }, exchange);
      });
    } catch (error) {
      exchange.onError(error as Error);
    }
  }

  #targetOf(text: string): RequestTarget | undefined {
    let target = this.#targets.get(text);
    if (target || !URL.canParse(text)) return target;
    const url = new URL(text);
    target = { url, origin: url.origin, path: url.pathname + url.search };
    if (this.#targets.size >= TARGETS_MAX) this.#targets.clear();
    this.#targets.set(text, target);
    return target;
  }

  async close(): Promise<void> {
    await Promise.all([this.#dispatcher.destroy(), this.#certified.destroy()]);
  }
}

interface ExchangeParts {
  readonly maxBytes: number;
  readonly names: Names;
  readonly isShort: (reason: string) => void;
  readonly proxyOf: (url: URL) => string | undefined;
}

class Exchange implements Dispatcher.DispatchHandler {
  readonly #timer: NodeJS.Timeout;
  #abort: ((reason?: Error) => void) | undefined;
  #settled = false;
  #status: number | null = null;
  #headers: Record<string, string> = {};
  readonly #chunks: Buffer[] = [];
  #maxBytes = 0;
  /** Bytes added to the pace before the body size was known. */
  #reserved = 0;
  #kept = 0;
  #read = 0;
  #isEndless = false;
  #connection: ConnectionUse | undefined;

  constructor(
    private readonly parts: ExchangeParts,
    private readonly url: URL,
    private readonly request: EndpointRequest,
    private readonly done: (answer: RequestResult) => void,
    private readonly responsePace: TokenBuckets | undefined,
  ) {
    this.#timer = setTimeout(() => this.#timeOut(), request.timeoutMs);
  }

  #timeOut(): void {
    const { names } = this.parts;
    const { timeoutMs, projectId } = this.request;
    const { hostname } = this.url;
    // A request that was sent no longer depends on a DNS lookup.
    const state = this.#abort ? undefined : names.stateOf(hostname, projectId);
    if (state === 'waiting') this.#withdraw('lookup');
    else if (state === 'asking')
      this.onError(LookupError.ofSilence(hostname, timeoutMs, names.isResolverAway));
    else this.#settle(timeoutFailure(timeoutMs, this.#statusRead()));
    this.#abort?.();
  }

  #withdraw(unsent: 'lookup' | 'shortage'): void {
    if (this.#settled) return;
    this.#settled = true;
    clearTimeout(this.#timer);
    const sentence =
      unsent === 'lookup'
        ? 'The host name of the endpoint was not looked up.'
        : 'This gateway could not open a connection; the request is sent later.';
    this.done({ ...unsendable(sentence), unsent });
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
      this.#headers[rawHeaders[k]!.toString('latin1').toLowerCase()] = headerText(
        rawHeaders[k + 1]!,
      );
    }
    const length = Number(this.#headers['content-length']);
    this.#isEndless = length > this.parts.maxBytes + DRAIN_BYTES;
    this.#maxBytes ||= this.#reserve(length);
    return true;
  }

  /**
   * Returns how many bytes of the body to keep, and adds them to the pace until the body size is
   * known.
   */
  #reserve(length: number): number {
    const { responsePace } = this;
    const { maxBytes } = this.parts;
    const { projectId } = this.request;
    const most = length < maxBytes && !this.#encoding ? length : maxBytes;
    if (!responsePace || most <= SHORT_BYTES) return maxBytes;
    if (responsePace.isOver(projectId)) return SHORT_BYTES;
    responsePace.add(projectId, most);
    this.#reserved = most;
    return maxBytes;
  }

  get #encoding(): string | undefined {
    // Content codings are case-insensitive:
    // https://www.rfc-editor.org/rfc/rfc9110#name-content-codings
    const encoding = this.#headers['content-encoding']?.trim().toLowerCase();
    return encoding === '' || encoding === 'identity' ? undefined : encoding;
  }

  onData(chunk: Buffer): boolean {
    this.#read += chunk.length;
    if (this.#kept < this.#maxBytes) {
      const left = this.#maxBytes - this.#kept;
      const piece = chunk.length > left ? chunk.subarray(0, left) : chunk;
      this.#chunks.push(piece);
      this.#kept += piece.length;
    }
    if (this.#read > this.parts.maxBytes + (this.#isEndless ? 0 : DRAIN_BYTES)) {
      this.#settle(null);
      this.#abort?.();
    }
    return true;
  }

  onComplete(): void {
    this.#settle(null);
  }

  #statusRead(): number | null {
    const head = this.#status === null && !this.#settled ? this.#connection?.cutHead() : undefined;
    if (head) {
      this.#status = head.status;
      this.#headers = Object.fromEntries(
        head.fields.map(([name, value]) => [name, headerText(Buffer.from(value, 'latin1'))]),
      );
    }
    return this.#status;
  }

  onError(error: Error): void {
    if (error instanceof LookupsBusyError) return this.#withdraw('lookup');
    const shortage = this.#connection ? undefined : shortageOf(error);
    if (shortage) {
      this.parts.isShort(shortage);
      return this.#withdraw('shortage');
    }
    const { requests, hasAnswered } = this.#connection ?? { requests: 1, hasAnswered: true };
    const mayWant =
      requests === 1 ? wantOf(this.url, this.request.certificate !== undefined) : undefined;
    const failure = failureOf(error, { place: this.url.host, status: this.#statusRead(), mayWant });
    this.#settle(failure, failure.class === 'reset' && requests > 1 && !hasAnswered);
  }

  #settle(broken: RequestFailure | null, isIdleLoss = false): void {
    if (this.#settled) return;
    this.#settled = true;
    clearTimeout(this.#timer);
    if (this.#kept === 0) return this.#finish('', broken, isIdleLoss);
    const bytes = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    const encoding = this.#encoding;
    if (!encoding) return this.#finish(bytes, broken, isIdleLoss);
    decompress(bytes, encoding, this.#maxBytes, (body) => this.#finish(body, broken, isIdleLoss));
  }

  #finish(bytes: Buffer | string, broken: RequestFailure | null, isIdleLoss: boolean): void {
    const { maxBytes, proxyOf } = this.parts;
    const status = this.#status;
    const headers = this.#headers;
    const failure = status === null ? broken : redirectFailure(status, headers);
    const body =
      typeof bytes === 'string' ? bytes : bodyText(bytes, headers['content-type'], maxBytes);
    this.responsePace?.add(this.request.projectId, body.length - this.#reserved);
    const remark =
      broken?.message ??
      tlsRemark(this.url, status, body) ??
      proxyRemark(status, proxyOf(this.url));
    this.done({ status, headers, body, failure, remark, isIdleLoss });
  }
}

export function unsendable(message: string): RequestResult {
  return { status: null, headers: {}, body: '', failure: { class: 'unsendable', message } };
}
