import {
  asError,
  matching,
  networkReason,
  tlsReason,
  type NetworkError,
} from './connection-errors.js';
import { GatewayError, type ErrorCode } from './errors.js';

type DatabasePlace = Readonly<Record<'host' | 'database' | 'username', string>> & {
  readonly port: number;
};

type DatabaseFailure = readonly [code: Extract<ErrorCode, `database_${string}`>, reason?: string];

const CUT: DatabaseFailure = ['database_unreachable', 'the connection was cut'];
const SILENT: DatabaseFailure = ['database_unreachable', 'no answer in time'];
const POOLED: DatabaseFailure = [
  'database_pooled',
  'prepared statements are missing or exist twice',
];

/**
 * By SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html). Without a reason,
 * the Postgres message is used.
 */
const SQLSTATES: Readonly<Record<string, DatabaseFailure>> = {
  '25006': ['database_read_only'],
  '25P03': ['database_timeout', 'idle_in_transaction_session_timeout has passed'],
  '25P04': ['database_timeout', 'transaction_timeout has passed'],
  '26000': POOLED,
  '28000': ['database_refused'],
  '28P01': ['database_refused'],
  '3D000': ['database_missing'],
  '40P01': ['database_timeout', 'it was part of a deadlock'],
  '42501': ['database_forbidden'],
  '42P05': POOLED,
  '53000': ['database_exhausted', 'its resources are used up'],
  '53100': ['database_exhausted', 'its disk is full'],
  '53200': ['database_exhausted', 'its memory is used up'],
  '53300': ['database_full', 'max_connections is used up'],
  '53400': ['database_exhausted', 'a limit of its configuration is reached'],
  '55P03': ['database_timeout', 'it waited longer than lock_timeout for a lock'],
  '57014': ['database_timeout', 'it took longer than statement_timeout'],
  '57P01': ['database_unreachable', 'it is stopping'],
  '57P02': ['database_unreachable', 'it restarts after a crash of one of its processes'],
  '57P03': ['database_unreachable', 'it is starting or stopping'],
  '57P05': ['database_timeout', 'idle_session_timeout has passed'],
  '58030': ['database_exhausted', 'it cannot read or write its files'],
};

/** By SQLSTATE and message, where the message is more specific. */
const SENTENCES_OF: Readonly<Record<string, readonly (readonly [RegExp, DatabaseFailure])[]>> = {
  // Connection poolers refuse clients with this SQLSTATE: https://www.pgbouncer.org/config.html
  '08P01': [
    [/unsupported startup parameter/, ['database_pooled', 'it refuses a startup parameter']],
    [
      /statement pooling mode/,
      ['database_pooled', 'it is in statement mode, which allows no transactions'],
    ],
    [/max_client_conn/, ['database_full', 'max_client_conn of PgBouncer is used up']],
    [
      /query_wait_timeout/,
      ['database_full', 'no connection of PgBouncer became free within query_wait_timeout'],
    ],
    [
      /server login has been failing|server_login_retry/,
      ['database_unreachable', 'PgBouncer cannot log in to it'],
    ],
  ],
  '28000': [
    [/no encryption|SSL off/, ['database_tls', 'it requires TLS for this user']],
    [/client certificate/, ['database_tls', 'it requires a client certificate']],
  ],
  '53300': [
    [/for role/, ['database_full', 'the connection limit of the role is used up']],
    [/for database/, ['database_full', 'the connection limit of the database is used up']],
  ],
  '57014': [
    [
      /user request/,
      ['database_timeout', 'it was cancelled by a user (pg_cancel_backend) or a failover'],
    ],
  ],
};

const DRIVER_SENTENCES: readonly (readonly [RegExp, DatabaseFailure])[] = [
  [/server does not support SSL/, ['database_tls', 'it does not speak TLS']],
  [/SASL.*password must be a string/, ['database_refused']],
  // Both messages mean that the pool is exhausted. A connection timeout has a different message.
  [/timeout exceeded when trying to connect|Timeout acquiring a connection/, ['database_busy']],
  [/timeout expired|due to connection timeout|Query read timeout/, SILENT],
  [/Connection terminated|Connection ended|is not queryable/, CUT],
];

/** Adds the address, reason and fix. Any other error is returned unchanged. */
export function explainDatabaseError(
  error: unknown,
  { host, port, database, username }: DatabasePlace,
): Error {
  if (error instanceof GatewayError) return error;
  const [code, reason = asError(error).message] = databaseFailure(error) ?? [];
  return code
    ? new GatewayError(code, { host, port, database, username, reason }, { cause: error })
    : asError(error);
}

function databaseFailure(error: unknown): DatabaseFailure | undefined {
  const { code = '', name, message = String(error) } = (error ?? {}) as NetworkError;
  const tls = tlsReason(error);
  if (tls) return ['database_tls', tls];
  const known = matching(SENTENCES_OF[code] ?? [], message) ?? SQLSTATES[code];
  if (known) return known;
  const reason = networkReason(error);
  if (reason) return ['database_unreachable', reason];
  if (name === 'KnexTimeoutError') return ['database_busy'];
  return matching(DRIVER_SENTENCES, message) ?? (code.startsWith('08') ? CUT : undefined);
}

/** For the health report, without a final period. */
export function databaseReason(
  error: unknown,
  place: DatabasePlace,
): { reason: string; fix: string } {
  const explained = explainDatabaseError(error, place);
  if (explained instanceof GatewayError) return { reason: explained.message, fix: explained.fix };
  const { code } = (error ?? {}) as NetworkError;
  return {
    reason: `Postgres at ${place.host}:${place.port} answers with an error: ${explained.message}${code ? ` (${code})` : ''}`,
    fix: 'read the log of Postgres',
  };
}
