import {
  createServer,
  type IncomingMessage,
  type ServerResponse,
  type IncomingHttpHeaders,
} from 'node:http';
import { createHash, timingSafeEqual } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { listen, type HttpListener } from '../http/listen.js';
import { networkOf } from '../http/network.js';
import { TokenBuckets } from '../process/token-buckets.js';
import type { ActivatedPlugins } from '../plugins/activation.js';
import type { Config } from '../config/settings.js';
import type { Log } from '../logging/log.js';

export type MetricsAnswer = ReturnType<typeof metricsResponse>;

interface MetricsPlace {
  /** `<host>:<port>`, `[<IPv6>]:<port>`, or `:<port>` for every local address. */
  readonly address: string;
  /** `server.pulladdr` or `agent.pulladdr`. */
  readonly key: string;
  readonly env: string;
}

/** Serves only /metrics, so that scrapers need no access to other paths. Throws like `listen`. */
export function serveMetrics(place: MetricsPlace, answer: MetricsAnswer): Promise<HttpListener> {
  const server = createServer((request, response) => {
    respond(request, response, answer).catch(() => response.destroy());
  });
  return listen(server, metricsPlace(place), 1);
}

export function metricsPlace({ address, key, env }: MetricsPlace) {
  const [, bind = '', port = '0'] = /^(.*):(\d+)$/.exec(address) ?? [];
  return {
    port: Number(port),
    bind: bind.replace(/^\[(.*)\]$/, '$1') || '::',
    setting: `${key} (${env})`,
    flag: '--pulladdr',
    addressSetting: `--pulladdr or ${key}`,
  };
}

/** For HEAD, Node.js omits the body. */
export async function sendMetrics(
  request: IncomingMessage,
  response: ServerResponse,
  answer: MetricsAnswer,
): Promise<void> {
  const { status, headers, body } = await answer(request);
  response.writeHead(status, { ...headers, 'content-length': body.length }).end(body);
}

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  answer: MetricsAnswer,
): Promise<void> {
  const { method, url = '/' } = request;
  const plain = (status: number, text: string, headers = {}) =>
    response
      .writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers })
      .end(`${text}\n`);
  if (url.replace(/\?.*$/, '') !== '/metrics')
    return void plain(404, 'Only /metrics is served here.');
  if (method !== 'GET' && method !== 'HEAD')
    return void plain(405, 'Only GET is allowed here.', { allow: 'GET' });
  return sendMetrics(request, response, answer);
}

export interface MetricsResponse {
  readonly status: 200 | 401 | 429 | 500;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const compress = promisify(gzip);

/** Smaller bodies fit in one packet and are not compressed. */
const COMPRESSED_BYTES_MIN = 1_400;
/** The fastest gzip level already shrinks repeated labels to a twentieth. */
const LEVEL = 1;
const TEXT = { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' };

/**
 * Gzips the response if the client accepts it. 401 for a missing or wrong token, 429 after too many
 * wrong tokens, and 500 if the backend fails.
 */
export function metricsResponse(of: {
  config: Config;
  plugins: Pick<ActivatedPlugins, 'meter'>;
  log: Log;
}) {
  const { config, plugins, log } = of;
  const admits = admission(config.metrics.bearer_token);
  let failing = false;
  return async ({ headers, socket }: Sent): Promise<MetricsResponse> => {
    const verdict = admits({ headers, socket });
    if (verdict !== 'admitted') return refusal(headers.authorization, verdict);
    try {
      const { contentType, body } = await plugins.meter.expose();
      failing = false;
      return await packed(contentType, await bytesOf(body), headers['accept-encoding']);
    } catch (error) {
      if (!failing)
        log.error({ error }, 'The metrics backend failed; /metrics returns 500 until it recovers.');
      failing = true;
      const sentence =
        'The metrics backend failed to produce the exposition. The log of this process has the reason.';
      return { status: 500, headers: TEXT, body: Buffer.from(`${sentence}\n`) };
    }
  };
}

/** Characters encoded per event loop turn, which takes half a millisecond. */
const PIECE = 512 * 1024;

async function bytesOf(body: string): Promise<Buffer> {
  await nextTurn();
  const bytes = Buffer.allocUnsafe(Buffer.byteLength(body));
  let length = 0;
  for (let from = 0; from < body.length;) {
    const until = from + PIECE - (isWithinCharacter(body, from + PIECE) ? 1 : 0);
    length += bytes.write(body.slice(from, until), length);
    from = until;
    await nextTurn();
  }
  return bytes;
}

function isWithinCharacter(text: string, at: number): boolean {
  return /^[\ud800-\udbff][\udc00-\udfff]/.test(text.slice(at - 1, at + 1));
}

interface Sent {
  readonly headers: IncomingHttpHeaders;
  readonly socket?: { readonly remoteAddress?: string | undefined } | undefined;
}

type Verdict = 'admitted' | 'wrong' | 'locked_out';

/**
 * Wrong tokens per address and `WRONG_MS`. After that, even the right token is refused, so that
 * guessing cannot succeed. Connections that have sent the right token and no wrong one since are
 * exempt.
 */
const WRONG_MAX = 10;
const WRONG_MS = 60_000;

/** Compares digests in constant time. */
function admission(token: string | undefined): (sent: Sent) => Verdict {
  if (token === undefined) return () => 'admitted';
  const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest();
  const wanted = digest(Buffer.from(token));
  const known = new WeakSet<object>();
  const wrong = new TokenBuckets(WRONG_MAX / (WRONG_MS / 1000), WRONG_MAX);
  return ({ headers: { authorization = '' }, socket }) => {
    const address = networkOf(socket?.remoteAddress ?? '');
    const [, given = ''] = /^Bearer +(.*)$/i.exec(authorization) ?? [];
    const isRight = timingSafeEqual(digest(Buffer.from(given, 'latin1')), wanted);
    if (socket && known.has(socket)) {
      if (isRight) return 'admitted';
      known.delete(socket);
    }
    if (given !== '' && wrong.take(address, 0).left === 0) return 'locked_out';
    if (isRight) {
      if (socket) known.add(socket);
      return 'admitted';
    }
    // A request without a token, such as a probe, is not a guess.
    if (given === '') return 'wrong';
    wrong.take(address, 1);
    return 'wrong';
  };
}

/**
 * Details of /healthz name resources of all tenants. They require the /metrics token or, if none is
 * set, a direct request from this machine.
 */
export function admitsToDetails({
  metrics: { bearer_token: token },
}: Pick<Config, 'metrics'>): (request: IncomingMessage) => boolean {
  const admits = admission(token);
  return ({ headers, socket }) => {
    if (token !== undefined) return admits({ headers, socket }) === 'admitted';
    const isForwarded = ['x-forwarded-for', 'forwarded', 'via'].some(
      (name) => headers[name] !== undefined,
    );
    return !isForwarded && /^(::ffff:)?127\.|^::1$/.test(socket.remoteAddress ?? '');
  };
}

function refusal(authorization: string | undefined, verdict: Verdict): MetricsResponse {
  if (verdict === 'locked_out') {
    const sentence = `More than ${WRONG_MAX} tokens from this address were wrong. Wait ${WRONG_MS / 1000} s, and send the correct one.`;
    return {
      status: 429,
      headers: { ...TEXT, 'retry-after': String(WRONG_MS / 1000) },
      body: Buffer.from(`${sentence}\n`),
    };
  }
  const what =
    authorization === undefined
      ? 'The request has no bearer token.'
      : 'The bearer token of the request is wrong.';
  const how =
    'Send `Authorization: Bearer <token>` with the token of metrics.bearer_token (GATEWAY_METRICS_BEARER_TOKEN, --metrics-bearer-token).';
  return {
    status: 401,
    headers: { ...TEXT, 'www-authenticate': 'Bearer realm="metrics"' },
    body: Buffer.from(`${what} ${how}\n`),
  };
}

async function packed(
  contentType: string,
  body: Buffer,
  accepted: string | string[] | undefined,
): Promise<MetricsResponse> {
  const headers = {
    'content-type': contentType,
    'cache-control': 'no-store',
    vary: 'accept-encoding',
  };
  if (body.length < COMPRESSED_BYTES_MIN || !takesGzip(String(accepted ?? '')))
    return { status: 200, headers, body };
  return {
    status: 200,
    headers: { ...headers, 'content-encoding': 'gzip' },
    body: await compress(body, { level: LEVEL }),
  };
}

/** https://www.rfc-editor.org/rfc/rfc9110#name-accept-encoding */
function takesGzip(accepted: string): boolean {
  return accepted.split(',').some((it) => /^\s*(gzip|\*)\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/i.test(it));
}
