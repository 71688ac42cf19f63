import { findHttpSource, type HttpSource } from '@gateway/store/config';
import type { Database } from '@gateway/store/postgres';

/** Changes and pauses apply after at most this time. */
const KEPT_MS = 1_000;
const SOURCES_MAX = 10_000;

/** At most one query per mask id per second. Missing sources are cached too. */
export function httpSourceCache({
  pool,
}: Pick<Database, 'pool'>): (maskId: string) => Promise<HttpSource | undefined> {
  const kept = new Map<
    string,
    { readonly source: Promise<HttpSource | undefined>; readonly untilMs: number }
  >();
  return (maskId) => {
    const nowMs = performance.now();
    const known = kept.get(maskId);
    if (known && known.untilMs > nowMs) return known.source;
    const source = findHttpSource(pool, maskId);
    kept.delete(maskId);
    kept.set(maskId, { source, untilMs: nowMs + KEPT_MS });
    source.catch(() => kept.delete(maskId));
    const [oldest] = kept.keys();
    if (kept.size > SOURCES_MAX && oldest !== undefined) kept.delete(oldest);
    return source;
  };
}
