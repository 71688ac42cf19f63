/** Milliseconds to wait before retrying a dependency after so many consecutive failures: doubles, with jitter over the upper half. */
export function backoffMs(failures: number, { baseMs = 100, capMs = 10_000 } = {}): number {
  const full = Math.min(capMs, baseMs * 2 ** Math.min(failures - 1, 30));
  return Math.round(full / 2 + Math.random() * (full / 2));
}
