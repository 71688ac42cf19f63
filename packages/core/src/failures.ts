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
  CERT_HAS_EXPIRED: 'its certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is self-signed',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate cannot be verified',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host',
};

/** Why the network failed, for a person; undefined when the error is of another sort. */
export function networkReason(error: unknown): string | undefined {
  const { code, errors, cause } = (error ?? {}) as NetworkError;
  if (code && NETWORK[code]) return NETWORK[code];
  for (const inner of errors ?? []) {
    const reason = networkReason(inner);
    if (reason) return reason;
  }
  return cause ? networkReason(cause) : undefined;
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
  if (code === '28P01' || code === '28000' || /SASL.*password must be a string/.test(message))
    return new GatewayError('database_refused', place, cause);
  if (code === '3D000') return new GatewayError('database_missing', place, cause);
  if (code === '53300') return new GatewayError('database_full', place, cause);
  const starting = code === '57P03' ? 'it is starting or stopping' : code === '57P01' ? 'it is stopping' : undefined;
  const timedOut = name === 'KnexTimeoutError' || /timeout expired|timeout exceeded when trying to connect/.test(message);
  const cut = /Connection terminated/.test(message);
  const noTls = /server does not support SSL/.test(message);
  const reason =
    networkReason(error) ??
    starting ??
    (timedOut
      ? 'no answer in time'
      : cut
        ? 'the connection was cut'
        : noTls
          ? 'it does not speak TLS, which database.options asks for'
          : undefined);
  if (reason) return new GatewayError('database_unreachable', { ...place, reason }, cause);
  return error instanceof Error ? error : new Error(message, cause);
}

/** The same for Redis. */
export function explainKvError(error: unknown, { host, port }: { host: string; port: number }): Error {
  const { message = String(error) } = (error ?? {}) as NetworkError;
  const cause = { cause: error };
  if (error instanceof GatewayError) return error;
  if (/NOAUTH|WRONGPASS|NOPERM|invalid password|invalid username-password/i.test(message)) {
    return new GatewayError('kv_refused', { host, port, reason: 'the user or password is wrong or missing' }, cause);
  }
  if (/DB index is out of range|invalid DB index/i.test(message)) {
    return new GatewayError('kv_refused', { host, port, reason: 'it has no database of that number' }, cause);
  }
  // ioredis tells with the first error why it cannot connect, and of every command after that only this.
  const unconnected = /Stream isn't writeable|Connection is closed/i.test(message);
  const cut = /max retries per request/i.test(message);
  const late = /connect ETIMEDOUT/i.test(message);
  const reason =
    networkReason(error) ??
    (unconnected ? 'there is no connection to it' : cut ? 'the connection was cut' : late ? 'no answer in time' : undefined);
  if (reason) return new GatewayError('kv_unreachable', { host, port, reason }, cause);
  return error instanceof Error ? error : new Error(message, cause);
}

/** The same for listening on a port. */
export function explainListenError(error: unknown, place: { port: number; bind: string; setting: string; flag: string }): Error {
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

/** Why Redis is of no use now, for a report of health: a sentence without its full stop that names the place, whatever the error. */
export function kvReason(error: unknown, { host, port }: { host: string; port: number }): string {
  const explained = explainKvError(error, { host, port });
  return explained instanceof GatewayError ? explained.message : `Redis at ${host}:${port} does not answer: ${explained.message}`;
}
