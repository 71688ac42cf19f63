/**
 * Milliseconds to wait before retrying a dependency (a broker, Postgres, KV): doubles from base to cap, with jitter over the upper half.
 *
 * @param failures consecutive failures, from 1
 */
export function backoffMs(failures: number, { baseMs = 100, capMs = 10_000 } = {}): number {
  const full = Math.min(capMs, baseMs * 2 ** Math.min(failures - 1, 30));
  return Math.round(full / 2 + Math.random() * (full / 2));
}
