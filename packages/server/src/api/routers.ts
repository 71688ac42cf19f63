import type { Middleware } from 'koa';
import { Router, type RouterContext } from '@koa/router';
import { isId } from '@gateway/core/events';
import { pathOf, type Route } from './route.js';

/**
 * The routers of the management API below `prefix`. A router compares a path with each of its routes, so those of one resource of a project have a router of
 * their own: `of` returns it for the path of a route, and `middleware` is made when all routes are there.
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
      const mounted = new Map([...routers].map(([resource, router]) => [resource, router.routes()]));
      return async (ctx, next) => {
        const run = ctx.path.startsWith(prefix) ? mounted.get(resourceOf(ctx.path.slice(prefix.length))) : undefined;
        await (run ? run(ctx as RouterContext, next) : next());
      };
    },
  };
}

/**
 * Returns what gives the methods of a path, sorted; none for paths that no route has. Parameters stand for ids only, so `/events/batch` is not the event `batch`.
 */
export function methodsByPath(prefix: string, routes: readonly Route[]): (path: string) => readonly string[] {
  const known = new Map<string, string[]>();
  for (const route of routes) {
    const shape = pathOf(route).replaceAll(/:\w+/g, ':');
    known.set(shape, [...(known.get(shape) ?? []), route.method.toUpperCase()].sort());
  }
  return (path) => {
    if (!path.startsWith(prefix)) return [];
    const parts = path.slice(prefix.length).replace(/\/$/, '').split('/');
    return known.get(parts.map((part) => (isId(part) ? ':' : part)).join('/')) ?? [];
  };
}

/** `events` of `/projects/:project_id/events/:id`; empty for paths outside a project. */
function resourceOf(path: string): string {
  return /^\/projects\/[^/]+\/([^/]+)/.exec(path)?.[1] ?? '';
}
