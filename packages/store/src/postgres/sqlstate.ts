/* https://www.postgresql.org/docs/current/errcodes-appendix.html */
export const DEADLOCK_DETECTED = '40P01';
export const DUPLICATE_DATABASE = '42P04';
export const LOCK_NOT_AVAILABLE = '55P03';
export const UNIQUE_VIOLATION = '23505';

export function sqlState(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/**
 * Postgres rejected the values (data exception, constraint violation or limit), so a retry cannot
 * succeed.
 */
export function rejectsContent(error: unknown): boolean {
  const { severity } = (error ?? {}) as { severity?: unknown };
  // An error that ends the session is not about values, even in class 22: an invalid connection
  // option also has that class.
  return /^(22|23|54)/.test(sqlState(error) ?? '') && severity !== 'FATAL' && severity !== 'PANIC';
}
