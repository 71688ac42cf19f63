import type { Context, Next } from 'koa';
import { countIngest } from '@gateway/core/metrics/meter';
import { API_SOURCE } from '@gateway/core/metrics/series';
import type { ActivatedPlugins } from '@gateway/core/plugins';

type Measured = Pick<ActivatedPlugins, 'meter' | 'metrics'>;

/**
 * All others, such as `PROPFIND`, share one label value, so that clients cannot control the number
 * of series.
 */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
const UNMATCHED = 'unmatched';

/** Probes and scrapes are excluded. */
export function measureRequests({ meter }: Measured, rootPath: string) {
  return async (ctx: Context, next: Next): Promise<void> => {
    const startedAtMs = performance.now();
    await next();
    const matched = (ctx as { _matchedRoute?: unknown })._matchedRoute;
    const route = typeof matched === 'string' ? matched.slice(rootPath.length) : UNMATCHED;
    if (route !== UNMATCHED && !route.startsWith('/api/')) return;
    const method = METHODS.has(ctx.method) ? ctx.method : 'other';
    meter.add('gateway_api_requests_total', { method, route, status: String(ctx.status) });
    meter.observe(
      'gateway_api_request_duration_seconds',
      { route },
      (performance.now() - startedAtMs) / 1000,
    );
  };
}

/** Counts in the same series as agents do. An error counts as a failed ingestion. */
export async function measureIngest<Created extends { readonly duplicate: boolean }>(
  { meter, metrics }: Measured,
  project: string,
  create: () => Promise<Created>,
): Promise<Created> {
  if (!metrics) return create();
  const startedAtMs = performance.now();
  let created: Created | undefined;
  try {
    return (created = await create());
  } finally {
    const end = !created ? 'failed' : created.duplicate ? 'duplicate' : 'accepted';
    countIngest(meter, { project, source: API_SOURCE }, { [end]: 1 });
    if (end === 'accepted')
      meter.observe(
        'gateway_ingest_latency',
        { project },
        (performance.now() - startedAtMs) / 1000,
      );
  }
}
