import type { Context, Next } from 'koa';
import { API_SOURCE, countIngest } from '@gateway/core/metrics';
import type { ActivatedPlugins } from '@gateway/core/plugins';

type Measured = Pick<ActivatedPlugins, 'meter' | 'metrics'>;

/** Requests by others, such as `PROPFIND`, are told under one name: who asks does not decide how many series there are. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
/** In place of a route, for paths and methods that none has. */
const UNMATCHED = 'unmatched';

/**
 * Counts and times the requests of the management API, by the pattern of their route. Probes and scrapes are not requests of it.
 *
 * @param rootPath what a reverse proxy puts in front; it is left out of the label
 */
export function measureRequests({ meter }: Measured, rootPath: string) {
  return async (ctx: Context, next: Next): Promise<void> => {
    const startedAtMs = performance.now();
    await next();
    const matched = (ctx as { _matchedRoute?: unknown })._matchedRoute;
    const route = typeof matched === 'string' ? matched.slice(rootPath.length) : UNMATCHED;
    if (route !== UNMATCHED && !route.startsWith('/api/')) return;
    const method = METHODS.has(ctx.method) ? ctx.method : 'other';
    meter.add('gateway_api_requests_total', { method, route, status: String(ctx.status) });
    meter.observe('gateway_api_request_duration_seconds', { route }, (performance.now() - startedAtMs) / 1000);
  };
}

/**
 * Does what creates an event over the API, and counts it as agents count messages. A request that was refused before it came to this is no event. What throws
 * here is one that could not be stored: an error of ingestion.
 */
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
    if (end === 'accepted') meter.observe('gateway_ingest_latency', { project }, (performance.now() - startedAtMs) / 1000);
  }
}
