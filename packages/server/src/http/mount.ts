import type { IncomingMessage } from 'node:http';
import { Router, type RouterContext } from '@koa/router';
import { Type } from '@sinclair/typebox';
import { GatewayError, type InvalidField } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import { rawJsonValue } from '@gateway/core/json';
import { authenticate, reachProject } from '../auth/authenticate.js';
import { readBody, unstorableStrings } from './body.js';
import { askDatabase, type Effect } from '../health/database-outage.js';
import { send, type Answer } from './envelope.js';
import type { Parts } from './server-context.js';
import type { AccountCall, Route } from './route.js';
import { closed } from './schema.js';
import { bodyValidator, queryValidator } from './validate.js';

/** Room in a body beside the data of an event. */
const ENVELOPE_BYTES = 262_144;

/** Rows by their keys. */
const LOOK_UP = { effect: 'looks_up', withinMs: 10_000 } as const;
/** All that a route does: longer than a statement may take. */
const RUN_MS = 40_000;

/** Puts the routes onto a router: each request is authenticated, its project is reached, its query and body are checked, and only then it runs. */
export function mount(routes: readonly Route[], parts: Parts): Router {
  const router = new Router({ prefix: `${parts.config.root_path}/api/v1` });
  const bodyLimit = parts.config.ingest.max_message_bytes + ENVELOPE_BYTES;
  const ask = askDatabase(parts);
  for (const route of routes) {
    const readValid = bodyReader(route, bodyLimit);
    const checkQuery = queryValidator(route.query ?? Type.Object({}, closed));
    const path = pathOf(route);
    const effect = effectOf(route);
    const creates = hasLocation(route, routes);
    router[route.method](path, async (ctx: RouterContext) => {
      const caller = await ask(() => authenticate(ctx, parts), LOOK_UP);
      await parts.limit(caller);
      const project =
        route.reach === 'project' ? await ask(() => reachProject(caller, ctx.params['project_id'] ?? '', parts), LOOK_UP) : undefined;
      for (const id of Object.values(ctx.params)) if (!isId(id)) throw new GatewayError('not_found', { thing: 'id', id });
      const query: Record<string, unknown> = { ...ctx.query };
      refuse(checkQuery(query));
      const call: AccountCall = { parts, caller, params: ctx.params, query, headers: ctx.headers, ...(await readValid(ctx.req)) };
      const run = () => (route.reach === 'project' ? route.run({ ...call, project: project! }) : route.run(call));
      const answer = await ask(run, { effect, withinMs: RUN_MS });
      const status = answer.status ?? route.status ?? 200;
      if (status === 201 && creates) ctx.set('location', location(ctx, route, { answer, parts }));
      send(ctx, status, { status: true, message: answer.message, data: answer.data });
    });
  }
  return router;
}

/** Below `/api/v1`. */
function pathOf(route: Route, path = route.path): string {
  return route.reach === 'project' ? `/projects/:project_id${path}` : path;
}

/** A route that creates does so in one commit, its last; others may go on after one, as when what waits for an endpoint is discarded. */
function effectOf({ method, status }: Route): Effect {
  if (method === 'get') return 'reads';
  return status === 201 ? 'creates' : 'changes';
}

/** Whether what a route creates can be got. */
function hasLocation(route: Route, routes: readonly Route[]): boolean {
  const collection = pathOf(route, route.createsIn);
  return routes.some((it) => it.method === 'get' && /^(.*)\/:\w+$/.exec(pathOf(it))?.[1] === collection);
}

/** https://www.rfc-editor.org/rfc/rfc9110#name-location: a path, or a whole URL when the public name is known. */
function location(ctx: RouterContext, route: Route, { answer, parts: { config, links } }: { answer: Answer; parts: Parts }): string {
  const asked = ctx.path.slice(config.root_path.length).replace(/\/+$/, '');
  const collection = route.createsIn === undefined ? asked : asked.slice(0, -route.path.length) + route.createsIn;
  return `${links.base}${collection}/${(answer.data as { uid: string }).uid}`;
}

/** Reads and checks the body of a route. The member that is kept as text may hold what Postgres cannot keep as a string; nothing else may. */
function bodyReader({ body: schema, raw }: Route, limit: number): (request: IncomingMessage) => Promise<Pick<AccountCall, 'body' | 'raw'>> {
  if (!schema) return () => Promise.resolve({ body: undefined, raw: '' });
  const check = bodyValidator(schema);
  return async (request) => {
    const { value, text } = await readBody(request, limit);
    refuse(check(value));
    refuse(unstorableStrings(raw === undefined ? value : { ...(value as object), [raw]: null }));
    return { body: value, raw: raw === undefined ? '' : (rawJsonValue(text, raw) ?? '') };
  };
}

/** Throws `invalid_request` when there is a problem. */
export function refuse(problems: readonly InvalidField[]): void {
  if (problems.length > 0) throw new GatewayError('invalid_request', { problems });
}
