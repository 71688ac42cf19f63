import { GatewayError, isGatewayError } from './errors.js';
import type { KvAddress } from './error-table.js';

export interface NetworkError {
  readonly code?: string;
  readonly name?: string;
  readonly message?: string;
  readonly syscall?: string;
  readonly errors?: readonly unknown[];
  readonly cause?: unknown;
}

/** The server is at fault. Each has to keep its sentence: stored errors are recognised by them. */
export const CONNECTION_REASONS = {
  nothing_listens: 'nothing listens there',
  certificate_expired: 'its certificate has expired',
  certificate_not_yet_valid: 'its certificate is not valid yet',
  certificate_incomplete:
    'its certificate is signed by an unknown authority, or it does not send the intermediate certificate that signed it',
  certificate_untrusted: 'its certificate is signed by an unknown authority',
  certificate_self_signed: 'its certificate is self-signed',
  certificate_other_host: 'its certificate is for another host',
  no_tls: 'it does not speak TLS there',
  client_certificate_required: 'it requires a client certificate',
  client_certificate_rejected: 'it rejected the client certificate',
  no_http_1: 'it does not offer HTTP/1.1 in TLS (ALPN); it may speak HTTP/2 only',
  no_common_protocol: 'no common protocol version or cipher',
} as const;
export type ConnectionReason = keyof typeof CONNECTION_REASONS;

const NETWORK: Readonly<Record<string, string>> = {
  ECONNREFUSED: CONNECTION_REASONS.nothing_listens,
  ECONNRESET: 'the connection was cut',
  EPIPE: 'the connection was cut',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'the host name could not be resolved',
  ETIMEDOUT: 'no answer in time',
  EHOSTUNREACH: 'no route to that host',
  ENETUNREACH: 'no route to that network',
};

/** Matched by error code, or by message if the code was lost. */
const TLS: readonly (readonly [codes: RegExp, sentence: RegExp, reason: ConnectionReason])[] = [
  [/^CERT_HAS_EXPIRED$/, /certificate has expired/, 'certificate_expired'],
  [/^CERT_NOT_YET_VALID$/, /certificate is not yet valid/, 'certificate_not_yet_valid'],
  [
    // The server sent a single certificate whose issuer is unknown.
    /^UNABLE_TO_VERIFY_LEAF_SIGNATURE$/,
    /unable to verify the first certificate/,
    'certificate_incomplete',
  ],
  [
    /^UNABLE_TO_|^SELF_SIGNED_CERT_IN_CHAIN$|^CERT_SIGNATURE_FAILURE$|^CERT_UNTRUSTED$/,
    /unable to get (local )?issuer certificate|self-signed certificate in|certificate signature failure/,
    'certificate_untrusted',
  ],
  [/^DEPTH_ZERO_SELF_SIGNED_CERT$/, /self-signed certificate/, 'certificate_self_signed'],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    /does not match certificate's altnames/,
    'certificate_other_host',
  ],
  [
    /^ERR_SSL_WRONG_VERSION_NUMBER$|^EPROTO$/,
    /wrong version number|packet length too long/,
    'no_tls',
  ],
  [
    /CERTIFICATE_REQUIRED$/,
    /alert certificate required|certificate required/i,
    'client_certificate_required',
  ],
  [
    /^ERR_SSL_.*ALERT_(UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_)/,
    /alert (unknown ca|bad certificate|certificate (expired|revoked|unknown))/,
    'client_certificate_rejected',
  ],
  [/NO_APPLICATION_PROTOCOL$/, /alert no application protocol/, 'no_http_1'],
  [
    /^ERR_SSL_|^ERR_TLS_/,
    /ssl3_|SSL routines|TLS handshake|establishing an SSL connection/,
    'no_common_protocol',
  ],
];

/** Undefined for any other error. */
export function tlsReason(error: unknown): string | undefined {
  return reasonIn(error, ({ code = '', message = '' }) => {
    // The message takes precedence, because the EPROTO code has several causes.
    const found =
      TLS.find(([, sentence]) => sentence.test(message)) ??
      TLS.find(([codes]) => codes.test(String(code)));
    return found && CONNECTION_REASONS[found[2]];
  });
}

/** Undefined for any other error. */
export function networkReason(error: unknown): string | undefined {
  return (
    reasonIn(error, ({ code = '' }) => NETWORK[code]) ??
    tlsReason(error) ??
    reasonIn(error, ({ code, syscall }) => {
      if (!code || (syscall !== 'connect' && syscall !== 'getaddrinfo')) return undefined;
      return code === 'EINVAL' && syscall === 'getaddrinfo'
        ? 'the host name is not valid'
        : `the system answers ${code}`;
    })
  );
}

function reasonIn(
  error: unknown,
  find: (error: NetworkError) => string | undefined,
): string | undefined {
  if (!error) return undefined;
  const it = error as NetworkError;
  let reason = find(it);
  for (const inner of [...(it.errors ?? []), it.cause]) reason ??= reasonIn(inner, find);
  return reason;
}

export function matching<T>(rows: readonly (readonly [RegExp, T])[], text: string): T | undefined {
  return rows.find(([pattern]) => pattern.test(text))?.[1];
}

export function asError(
  error: unknown,
  message = String((error as NetworkError | null)?.message ?? error),
): Error {
  return error instanceof Error ? error : new Error(message, { cause: error });
}

interface KvPlace {
  readonly scheme?: string;
  readonly tls?: { readonly cert_file?: string | undefined };
  readonly host: string;
  readonly port: number;
  readonly sentinel?: { readonly addresses: readonly string[] } | undefined;
  readonly cluster?: { readonly addresses: readonly string[] } | undefined;
}

export function kvAddress({ host, port, sentinel, cluster }: KvPlace): Required<KvAddress> {
  return {
    host,
    port,
    sentinels: (sentinel?.addresses ?? []).join(', '),
    nodes: (cluster?.addresses ?? []).join(', '),
  };
}

const KV_REFUSALS: readonly (readonly [RegExp, string])[] = [
  [
    /NOAUTH|WRONGPASS|invalid password|invalid username-password|without any password configured/i,
    'the user or password is wrong or missing',
  ],
  [/DB index is out of range|invalid DB index/i, 'it has no database of that number'],
  [/cluster support disabled/i, 'it is not a Cluster'],
];
const MOVED: Denial = {
  reason: 'refuses commands: it is a node of a Cluster',
  fix: 'name the nodes with kv.cluster.addresses (--kv-cluster-addresses)',
};

interface Denial {
  readonly reason: string;
  readonly fix: string;
}

/** Redis ACL: https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/ */
function aclRefusal(sentences: string): Denial | undefined {
  if (!/NOPERM|ACL failure in script|user executing the script can't/i.test(sentences))
    return undefined;
  const [, command] = /'([\w|-]+)' (?:sub)?command/.exec(sentences) ?? [];
  const what = command
    ? `the command ${command.toUpperCase()}`
    : /\bkeys?\b/.test(sentences)
      ? 'keys that begin with gateway:'
      : 'a command';
  return {
    reason: `refuses commands: the ACL of its user refuses ${what}`,
    fix: 'allow the user of kv.username the keys ~gateway:* and +@read +@write +@connection +@scripting +info +time +cluster|slots, with ACL SETUSER',
  };
}

/** ioredis drops error codes, so its errors are matched by message. */
const KV_SENTENCES: readonly (readonly [RegExp, string])[] = [
  ...Object.entries(NETWORK).map(([code, reason]) => [new RegExp(code), reason] as const),
  [
    /No such master|invalid reply: null/,
    'the Sentinels do not know the master in kv.sentinel.master_name',
  ],
  [/CLUSTERDOWN/, 'the Cluster is down: nodes are missing, or not all slots are served'],
  [/max retries per request/i, 'the connection was cut'],
  [
    /All sentinels are unreachable|Failed to refresh slots cache|Cluster redirections/,
    'none of them sent a usable response',
  ],
  // ioredis reports the reason only in the first error. Later ones have these messages.
  [
    /Stream isn't writeable|Connection is closed|Cluster isn't ready/i,
    'there is no connection to it',
  ],
];

/** Adds the address, reason and fix. Any other error is returned unchanged. */
export function explainKvError(error: unknown, settings: KvPlace): Error {
  if (error instanceof GatewayError) return error;
  const place = kvAddress(settings);
  const sentences = messagesOf(error).join('; ');
  const fail = (code: 'kv_refused' | 'kv_tls' | 'kv_unreachable', reason: string) =>
    new GatewayError(code, { ...place, reason }, { cause: error });
  const denial =
    aclRefusal(sentences) ??
    (/(^|; )MOVED /.test(sentences) && place.nodes === '' ? MOVED : unwritable(error));
  if (denial)
    return new GatewayError(
      'kv_denied',
      { ...place, reason: denial.reason, what: denial.fix },
      { cause: error },
    );
  const refused = matching(KV_REFUSALS, sentences);
  if (refused) return fail('kv_refused', refused);
  const tls = tlsReason(error);
  if (tls) return fail('kv_tls', tls);
  const reason = networkReason(error) ?? matching(KV_SENTENCES, sentences);
  // In TLS 1.3, a missing client certificate may appear only as a connection reset.
  if (
    reason === NETWORK['ECONNRESET'] &&
    settings.scheme === 'rediss' &&
    !settings.tls?.cert_file
  ) {
    return fail('kv_tls', `${reason}; it may require a client certificate`);
  }
  return reason ? fail('kv_unreachable', reason) : asError(error, sentences);
}

function messagesOf(error: unknown, depth = 4): string[] {
  const { message = String(error), cause } = (error ?? {}) as NetworkError;
  const lastNodeError = (error as { lastNodeError?: unknown } | null)?.lastNodeError;
  const inner = cause ?? lastNodeError;
  return [message, ...(inner && depth > 0 ? messagesOf(inner, depth - 1) : [])];
}

const LISTEN: Readonly<Record<string, string>> = {
  EACCES: 'this user may not open that port',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'there is no such address',
};

/** Adds the address, reason and fix. Any other error is returned unchanged. */
export function explainListenError(
  error: unknown,
  place: { port: number; bind: string; setting: string; flag: string; addressSetting?: string },
): Error {
  const { code = '' } = (error ?? {}) as NetworkError;
  if (code === 'EADDRINUSE') return new GatewayError('port_in_use', place, { cause: error });
  const reason = LISTEN[code];
  return reason
    ? new GatewayError('port_refused', { ...place, reason }, { cause: error })
    : asError(error);
}

/**
 * The Redis server responds but accepts no writes:
 * https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors
 */
const UNWRITABLE: readonly (Denial & { readonly begins: string })[] = [
  {
    begins: 'OOM ',
    reason: 'accepts no writes: its memory is full (maxmemory)',
    fix: 'raise its maxmemory, or delete keys of others',
  },
  {
    begins: 'READONLY ',
    reason: 'accepts no writes: it is a replica',
    fix: 'name the primary with kv.host (--kv-host), or use kv.sentinel',
  },
  {
    begins: 'MISCONF ',
    reason: 'accepts no writes: it cannot save its data to its disk',
    fix: 'free space on its disk, or make its folder writable',
  },
  {
    begins: 'LOADING ',
    reason: 'accepts no writes: it is still loading its data',
    fix: 'wait until it has started',
  },
];

function unwritable(error: unknown): Denial | undefined {
  const messages = messagesOf(error);
  return UNWRITABLE.find(({ begins }) => messages.some((message) => message.startsWith(begins)));
}

/** For the health report, without a final period. */
export function kvReason(error: unknown, place: KvPlace): string {
  const explained = explainKvError(error, place);
  if (isGatewayError(explained, 'kv_denied')) return `${explained.message}; ${explained.fix}`;
  return explained instanceof GatewayError
    ? explained.message
    : `Redis at ${place.host}:${place.port} does not answer: ${explained.message}`;
}

const FILE: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of the path is not a folder',
  ENOSPC: 'the disk is full',
  EROFS: 'the file system is read-only for this process',
};

/** Unlike the Node.js message, omits the path. */
export function fileReason(error: unknown): string {
  const { code = '', message } = error as { code?: string; message?: string };
  return FILE[code] ?? message ?? String(error);
}
