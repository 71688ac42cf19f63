/* https://www.postgresql.org/docs/current/errcodes-appendix.html */
export const DEADLOCK_DETECTED = '40P01';
export const LOCK_NOT_AVAILABLE = '55P03';
export const UNIQUE_VIOLATION = '23505';

/** The SQLSTATE of an error; undefined when it has none. */
export function sqlState(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/**
 * True when Postgres rejected the values of a statement (data exception, constraint violation, limit), so that a retry cannot succeed. All other errors
 * are temporary: Postgres is down, starting, full, read-only or out of connections, or the statement was cancelled.
 */
export function rejectsContent(error: unknown): boolean {
  const { severity } = (error ?? {}) as { severity?: unknown };
  // An error that ends the session is not about values: a wrong connection option has a code of class 22, too.
  return /^(22|23|54)/.test(sqlState(error) ?? '') && severity !== 'FATAL' && severity !== 'PANIC';
}
