/**
 * Milliseconds to wait before the next try of something that the gateway itself depends on (a broker, Postgres, KV): doubles from the
 * base to the cap, and is drawn from the upper half so that many agents do not return in step.
 *
 * @param failures how many tries in a row have failed, from 1
 */
export function backoffMs(failures: number, { baseMs = 100, capMs = 10_000 } = {}): number {
  const full = Math.min(capMs, baseMs * 2 ** Math.min(failures - 1, 30));
  return Math.round(full / 2 + Math.random() * (full / 2));
}
