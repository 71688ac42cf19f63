/**
 * True when Postgres refuses what a statement contains (data exceptions, constraint violations, limits), which trying again cannot mend.
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
export function refusesContent(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return typeof code === 'string' && /^(22|23|54)...$/.test(code);
}
