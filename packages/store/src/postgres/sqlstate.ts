/**
 * True when Postgres refuses what a statement contains (data exceptions, constraint violations, limits), which trying again cannot mend. Everything else is
 * about Postgres and passes: away, starting, full, read-only, out of connections, a statement that was cut off.
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
export function rejectsContent(error: unknown): boolean {
  const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown };
  // What ends a session is never about the values of a statement: a wrong option of the connection has a code of class 22 as well.
  return typeof code === 'string' && /^(22|23|54)[0-9A-Z]{3}$/.test(code) && severity !== 'FATAL' && severity !== 'PANIC';
}
