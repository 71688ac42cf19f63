import { GatewayError } from './errors.js';

interface NetworkError {
  readonly code?: string;
  readonly name?: string;
  readonly message?: string;
  readonly errors?: readonly unknown[];
  readonly cause?: unknown;
}

interface DatabasePlace {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly username: string;
}

const NETWORK: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'the connection was cut',
  EPIPE: 'the connection was cut',
  ENOTFOUND: 'there is no host of that name',
  EAI_AGAIN: 'the name of the host could not be looked up',
  ETIMEDOUT: 'no answer in time',
  EHOSTUNREACH: 'there is no way to that host',
  ENETUNREACH: 'there is no way to that network',
};

/** What Postgres has run out of, by SQLSTATE: class 53 without the connections, and what the system says of its files. */
const EXHAUSTED: Readonly<Record<string, string>> = {
  '53000': 'its resources are used up',
  '53100': 'its disk is full',
  '53200': 'its memory is used up',
  '53400': 'a limit of its configuration is reached',
  '58030': 'it cannot read or write its files',
};

/** Why Postgres ends connections or takes none, by SQLSTATE. */
const STARTING: Readonly<Record<string, string>> = {
  '57P01': 'it is stopping',
  '57P02': 'it starts anew after a crash of one of its processes',
  '57P03': 'it is starting or stopping',
};

/** What is said of a TLS handshake that failed, by the code of the error or, where only that is left, by its sentence. */
const TLS: readonly (readonly [codes: RegExp, sentence: RegExp, reason: string])[] = [
  [/^CERT_HAS_EXPIRED$/, /certificate has expired/, 'its certificate has expired'],
  [/^CERT_NOT_YET_VALID$/, /certificate is not yet valid/, 'its certificate is not valid yet'],
  [
    /^UNABLE_TO_|^SELF_SIGNED_CERT_IN_CHAIN$|^CERT_SIGNATURE_FAILURE$|^CERT_UNTRUSTED$/,
    /unable to (get (local )?issuer certificate|verify the first certificate)|self-signed certificate in|certificate signature failure/,
    'its certificate is by an authority that is not known here',
  ],
  [/^DEPTH_ZERO_SELF_SIGNED_CERT$/, /self-signed certificate/, 'its certificate is self-signed'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, /does not match certificate's altnames/, 'its certificate is for another host'],
  [/^ERR_SSL_WRONG_VERSION_NUMBER$|^EPROTO$/, /wrong version number|packet length too long/, 'it does not speak TLS there'],
  [/CERTIFICATE_REQUIRED$/, /alert certificate required|certificate required/i, 'it wants a certificate of ours'],
  [
    /^ERR_SSL_.*ALERT_(UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_)/,
    /alert (unknown ca|bad certificate|certificate (expired|revoked|unknown))/,
    'it does not accept our certificate',
  ],
  [/^ERR_SSL_|^ERR_TLS_/, /ssl3_|SSL routines|TLS handshake|establishing an SSL connection/, 'the two could not agree on how'],
];

/** Why a TLS handshake failed, for a person; undefined when the error is of another sort. */
export function tlsReason(error: unknown): string | undefined {
  const { code = '', message = '', errors, cause } = (error ?? {}) as NetworkError;
  // A protocol error may be about anything, so that its sentence says more than its code.
  const found = TLS.find(([, sentence]) => sentence.test(message)) ?? TLS.find(([codes]) => codes.test(String(code)));
  if (found) return found[2];
  for (const inner of errors ?? []) {
    const reason = tlsReason(inner);
    if (reason) return reason;
  }
  return cause ? tlsReason(cause) : undefined;
}

/** Why the network failed, for a person; undefined when the error is of another sort. */
export function networkReason(error: unknown): string | undefined {
  const { code, errors, cause } = (error ?? {}) as NetworkError;
  if (code && NETWORK[code]) return NETWORK[code];
  for (const inner of errors ?? []) {
    const reason = networkReason(inner);
    if (reason) return reason;
  }
  return (cause ? networkReason(cause) : undefined) ?? tlsReason(error);
}

/**
 * An error of Postgres as one that names the place and the setting; an error that is not about reaching Postgres comes back as it is.
 */
export function explainDatabaseError(error: unknown, { host, port, database, username }: DatabasePlace): Error {
  const place = { host, port, database, username };
  const { code, name, message = String(error) } = (error ?? {}) as NetworkError;
  const cause = { cause: error };
  if (error instanceof GatewayError) return error;
  // https://www.postgresql.org/docs/current/errcodes-appendix.html
  const tls =
    tlsReason(error) ??
    (/server does not support SSL/.test(message) ? 'it does not speak TLS' : undefined) ??
    (code === '28000' && /no encryption|SSL off/.test(message) ? 'it wants TLS of this user' : undefined) ??
    (code === '28000' && /client certificate/.test(message) ? 'it wants a certificate of ours' : undefined);
  if (tls) return new GatewayError('database_tls', { ...place, reason: tls }, cause);
  if (code === '28P01' || code === '28000' || /SASL.*password must be a string/.test(message))
    return new GatewayError('database_refused', place, cause);
  if (code === '3D000') return new GatewayError('database_missing', place, cause);
  if (code === '53300') return new GatewayError('database_full', place, cause);
  if (code === '25006') return new GatewayError('database_read_only', place, cause);
  const exhausted = EXHAUSTED[code ?? ''];
  if (exhausted) return new GatewayError('database_exhausted', { ...place, reason: exhausted }, cause);
  const starting = STARTING[code ?? ''];
  const timedOut =
    name === 'KnexTimeoutError' ||
    code === '57014' ||
    /timeout expired|timeout exceeded when trying to connect|due to connection timeout|Query read timeout/.test(message);
  const cut = code?.startsWith('08') || /Connection terminated|Connection ended|is not queryable/.test(message);
  const reason = networkReason(error) ?? starting ?? (timedOut ? 'no answer in time' : cut ? 'the connection was cut' : undefined);
  if (reason) return new GatewayError('database_unreachable', { ...place, reason }, cause);
  return error instanceof Error ? error : new Error(message, cause);
}

/** Where KV is looked for: the `kv` settings. */
export interface KvPlace {
  readonly scheme?: string;
  readonly tls?: { readonly cert_file?: string | undefined };
  readonly host: string;
  readonly port: number;
  readonly sentinel?: { readonly addresses: readonly string[] } | undefined;
  readonly cluster?: { readonly addresses: readonly string[] } | undefined;
}

/** The place as errors of KV name it. */
export function kvAddress({ host, port, sentinel, cluster }: KvPlace): { host: string; port: number; sentinels: string; nodes: string } {
  const listed = (addresses: readonly string[] = []) => addresses.join(', ');
  return { host, port, sentinels: listed(sentinel?.addresses), nodes: listed(cluster?.addresses) };
}

/** The same for Redis. */
export function explainKvError(error: unknown, settings: KvPlace): Error {
  const { scheme, tls: files } = settings;
  const cause = { cause: error };
  if (error instanceof GatewayError) return error;
  const place = kvAddress(settings);
  const told = messagesOf(error).join('; ');
  if (/NOAUTH|WRONGPASS|NOPERM|invalid password|invalid username-password|without any password configured/i.test(told)) {
    return new GatewayError('kv_refused', { ...place, reason: 'the user or password is wrong or missing' }, cause);
  }
  if (/DB index is out of range|invalid DB index/i.test(told)) {
    return new GatewayError('kv_refused', { ...place, reason: 'it has no database of that number' }, cause);
  }
  if (/cluster support disabled/i.test(told)) return new GatewayError('kv_refused', { ...place, reason: 'it is not a Cluster' }, cause);
  if (/^MOVED |; MOVED /.test(told) && place.nodes === '') {
    const reason = 'it is a node of a Cluster; name the nodes with kv.cluster.addresses (--kv-cluster-addresses)';
    return new GatewayError('kv_refused', { ...place, reason }, cause);
  }
  const tls = tlsReason(error);
  if (tls) return new GatewayError('kv_tls', { ...place, reason: tls }, cause);
  const reason = kvNetworkReason(error, told);
  // Of TLS 1.3 a client may hear no more than that.
  if (reason === NETWORK['ECONNRESET'] && scheme === 'rediss' && !files?.cert_file) {
    return new GatewayError('kv_tls', { ...place, reason: `${reason}; it may want a certificate of ours` }, cause);
  }
  if (reason) return new GatewayError('kv_unreachable', { ...place, reason }, cause);
  return error instanceof Error ? error : new Error(told, cause);
}

function kvNetworkReason(error: unknown, told: string): string | undefined {
  const known = networkReason(error);
  if (known) return known;
  // Sentinels and Clusters hand on the sentence of an error without its code.
  const code = Object.keys(NETWORK).find((it) => told.includes(it));
  if (code) return NETWORK[code];
  if (/No such master|invalid reply: null/.test(told)) return 'the Sentinels know no master of the name in kv.sentinel.master_name';
  if (/CLUSTERDOWN/.test(told)) return 'the Cluster is down: nodes are missing, or not all slots are served';
  if (/max retries per request/i.test(told)) return 'the connection was cut';
  if (/All sentinels are unreachable|Failed to refresh slots cache|Cluster redirections/.test(told))
    return 'none of them gives an answer that helps';
  // ioredis tells with the first error why it cannot connect, and of every command after that only this.
  if (/Stream isn't writeable|Connection is closed|Cluster isn't ready/i.test(told)) return 'there is no connection to it';
  return undefined;
}

/** What an error and what caused it say. */
function messagesOf(error: unknown, depth = 4): string[] {
  const { message = String(error), cause } = (error ?? {}) as NetworkError;
  const lastNodeError = (error as { lastNodeError?: unknown } | null)?.lastNodeError;
  const inner = cause ?? lastNodeError;
  return [message, ...(inner && depth > 0 ? messagesOf(inner, depth - 1) : [])];
}

/** The same for listening on a port. */
export function explainListenError(
  error: unknown,
  place: { port: number; bind: string; setting: string; flag: string; addressSetting?: string },
): Error {
  const { code, message = String(error) } = (error ?? {}) as NetworkError;
  const cause = { cause: error };
  const reasons: Readonly<Record<string, string>> = {
    EACCES: 'this user may not open it',
    EADDRNOTAVAIL: 'this machine does not have that address',
    ENOTFOUND: 'there is no such address',
  };
  if (code === 'EADDRINUSE') return new GatewayError('port_in_use', place, cause);
  if (code && reasons[code]) return new GatewayError('port_refused', { ...place, reason: reasons[code] }, cause);
  return error instanceof Error ? error : new Error(message, cause);
}

/** Why Postgres is of no use now, for a report of health: a sentence without its full stop that names the place, and what to do, whatever the error. */
export function databaseReason(error: unknown, place: DatabasePlace): { reason: string; fix: string } {
  const explained = explainDatabaseError(error, place);
  if (explained instanceof GatewayError) return { reason: explained.message, fix: explained.fix };
  const { code } = (error ?? {}) as NetworkError;
  return {
    reason: `Postgres at ${place.host}:${place.port} answers with an error: ${explained.message}${code ? ` (${code})` : ''}`,
    fix: 'look at the log of Postgres',
  };
}

/** Why Redis takes nothing that is written, though it answers: https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors */
const UNWRITABLE: readonly (readonly [RegExp, string])[] = [
  [/^OOM /, 'its memory is full (maxmemory)'],
  [/^READONLY /, 'it is a replica'],
  [/^MISCONF /, 'it cannot save its data to its disk'],
  [/^LOADING /, 'it is still loading its data'],
];

/** Why Redis is of no use now, for a report of health: a sentence without its full stop that names the place, whatever the error. */
export function kvReason(error: unknown, place: KvPlace): string {
  const told = messagesOf(error);
  const unwritable = UNWRITABLE.find(([sentence]) => told.some((message) => sentence.test(message)));
  if (unwritable) return `Redis at ${place.host}:${place.port} takes nothing that is written: ${unwritable[1]}`;
  const explained = explainKvError(error, place);
  return explained instanceof GatewayError
    ? explained.message
    : `Redis at ${place.host}:${place.port} does not answer: ${explained.message}`;
}
