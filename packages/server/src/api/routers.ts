import type { Middleware } from 'koa';
import { Router, type RouterContext } from '@koa/router';
import { isId } from '@gateway/core/events';
import { pathOf, type Route } from './route.js';

/**
 * Each project resource has its own router, because a router tries all its paths on a request. Call
 * `middleware` after adding all routes.
 */
export function apiRouters(prefix: string): { of(path: string): Router; middleware(): Middleware } {
  const routers = new Map<string, Router>();
  return {
    of(path) {
      const resource = resourceOf(path);
      const router = routers.get(resource) ?? new Router({ prefix });
      routers.set(resource, router);
      return router;
    },
    middleware() {
      const mounted = new Map(
        [...routers].map(([resource, router]) => [resource, router.routes()]),
      );
      return async (ctx, next) => {
        const run = ctx.path.startsWith(prefix)
          ? mounted.get(resourceOf(ctx.path.slice(prefix.length)))
          : undefined;
        await (run ? run(ctx as RouterContext, next) : next());
      };
    },
  };
}

/** Parameters other than `name` match only ids, so `/events/batch` is not the event `batch`. */
export function methodsByPath(
  prefix: string,
  routes: readonly Route[],
): (path: string) => readonly string[] {
  const known = new Map<string, string[]>();
  for (const route of routes) {
    const shape = pathOf(route).replaceAll(/:(?!name$)\w+/g, ':');
    known.set(shape, [...(known.get(shape) ?? []), route.method.toUpperCase()].sort());
  }
  return (path) => {
    if (!path.startsWith(prefix)) return [];
    const parts = path.slice(prefix.length).replace(/\/$/, '').split('/');
    const shape = parts.map((part) => (isId(part) ? ':' : part)).join('/');
    return known.get(shape) ?? known.get(shape.replace(/[^/]+$/, ':name')) ?? [];
  };
}

/** Such as `events` for `/projects/:project_id/events/:id`. Empty outside a project. */
function resourceOf(path: string): string {
  return /^\/projects\/[^/]+\/([^/]+)/.exec(path)?.[1] ?? '';
}
