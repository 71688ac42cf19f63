import type { Effect } from '../../health/database-outage.js';
import type { ApiAnswer } from '../../http/response.js';
import { createsOnce } from '../idempotency.js';
import { editableAt, runIfMatch } from '../preconditions.js';
import { RESOURCES } from '../resources.js';
import { resourceOf, type Route } from '../route.js';
import type { ApiParts, RouteExchange, RouteStep } from './step.js';

const RUN_MS = 40_000;

type Run = (it: RouteExchange) => Promise<ApiAnswer>;
/** Wraps a route's work; returns `run` if the route does not need it. */
type Wrapper = (run: Run, route: Route, parts: ApiParts) => Run;

/** Runs the route inside `wrappers`, the first of which is the outermost. */
export function work(...wrappers: readonly Wrapper[]): RouteStep {
  return (route, parts) => {
    const { ask, configCache, shardOf } = parts.admission;
    const configures = route.method !== 'get' && RESOURCES[resourceOf(route)]?.isRouting !== false;
    const effect = effectOf(route);
    const run = wrappers.reduceRight<Run>(
      (inner, wrapper) => wrapper(inner, route, parts),
      ({ call }) => route.run(call),
    );
    return async (it) => {
      const { project } = it.call as Partial<typeof it.call>;
      it.answer = await ask(() => run(it), {
        effect,
        withinMs: RUN_MS,
        ...(project && { shards: async () => [await shardOf(project.id, project.shard)] }),
      }).finally(() => {
        if (project && configures) void configCache.invalidate(project.id);
      });
    };
  };
}

export const ifMatch: Wrapper = (run, route, { routes }) => {
  const shown = route.method === 'get' ? undefined : editableAt(route, routes);
  if (!shown) return run;
  return (it) =>
    it.call.headers['if-match'] === undefined ? run(it) : runIfMatch(shown, it.call, () => run(it));
};

export const once: Wrapper = (run, route, parts) =>
  createsOnce(route) ? (it) => parts.once(route, it.call, () => run(it)) : run;

export const oneAtATime: Wrapper = (run, route, { limits }) =>
  route.isLong ? (it) => limits.longReads(it.owner, () => run(it)) : run;

export const audit: Wrapper = (run, route, parts) => {
  const audited = parts.audit(route);
  return audited ? ({ call }) => audited(call) : run;
};

/**
 * A creating route commits once, as its last step; others, such as the deletion of an endpoint, can
 * continue after a commit.
 */
function effectOf({ method, status }: Route): Effect {
  if (method === 'get') return 'reads';
  return status === 201 ? 'creates' : 'changes';
}
