import type { IncomingMessage } from 'node:http';
import { Router, type RouterContext } from '@koa/router';
import { GatewayError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import { rawJsonValue } from '@gateway/core/json';
import { authenticate, reachProject } from '../auth/authenticate.js';
import { askDatabase, type Effect } from '../health/database-outage.js';
import { readBody, unstorableStrings } from '../http/body.js';
import { send, type Answer } from '../http/response.js';
import { object } from '../http/schema.js';
import { assertValid, bodyValidator, queryValidator } from '../http/validate.js';
import type { AccountCall, Route, ServerContext } from './route.js';

/** Room in a body besides the data of an event. */
const ENVELOPE_BYTES = 262_144;

const LOOK_UP = { effect: 'looks_up', withinMs: 10_000 } as const;
/** For a whole route: longer than a statement may take. */
const RUN_MS = 40_000;

/** Mounts the routes. Each request passes authentication, the rate limit, the check of its project, and validation before the route runs. */
export function mount(routes: readonly Route[], context: ServerContext): Router {
  const { config, limit } = context;
  const router = new Router({ prefix: `${config.root_path}/api/v1` });
  const bodyLimit = config.ingest.max_message_bytes + ENVELOPE_BYTES;
  const ask = askDatabase(context);
  for (const route of routes) {
    const readValid = bodyReader(route, bodyLimit);
    const validateQuery = queryValidator(route.query ?? object({}));
    const effect = effectOf(route);
    const creates = hasLocation(route, routes);
    router[route.method](pathOf(route), async (ctx: RouterContext) => {
      const { params, headers } = ctx;
      const caller = await ask(() => authenticate(ctx.get('authorization'), context), LOOK_UP);
      await limit(caller);
      const project =
        route.reach === 'project' ? await ask(() => reachProject(caller, params['project_id'] ?? '', context), LOOK_UP) : undefined;
      for (const id of Object.values(params)) if (!isId(id)) throw new GatewayError('not_found', { thing: 'id', id });
      const query: Record<string, unknown> = { ...ctx.query };
      assertValid(validateQuery(query));
      const given = { caller, params, id: params['id'] ?? '', query, headers, project: project!, ...(await readValid(ctx.req)) };
      const answer = await ask(() => route.run({ ...context, ...given }), { effect, withinMs: RUN_MS });
      const status = answer.status ?? route.status ?? 200;
      if (status === 201 && creates) ctx.set('location', location(ctx, route, { answer, context }));
      send(ctx, status, { status: true, message: answer.message, data: answer.data });
    });
  }
  return router;
}

function pathOf(route: Route, path = route.path): string {
  return route.reach === 'project' ? `/projects/:project_id${path}` : path;
}

/** Routes that create make one commit, as their last step; others may work on after one, as the deletion of an endpoint does. */
function effectOf({ method, status }: Route): Effect {
  if (method === 'get') return 'reads';
  return status === 201 ? 'creates' : 'changes';
}

/** Whether a route can show what this route creates. */
function hasLocation(route: Route, routes: readonly Route[]): boolean {
  const collection = pathOf(route, route.createsIn);
  return routes.some((it) => it.method === 'get' && /^(.*)\/:\w+$/.exec(pathOf(it))?.[1] === collection);
}

/** https://www.rfc-editor.org/rfc/rfc9110#name-location: a path, or a URL when the public host is known. */
function location(
  ctx: RouterContext,
  route: Route,
  { answer, context: { config, links } }: { answer: Answer; context: ServerContext },
): string {
  const path = ctx.path.slice(config.root_path.length).replace(/\/+$/, '');
  const collection = route.createsIn === undefined ? path : path.slice(0, -route.path.length) + route.createsIn;
  return `${links.base}${collection}/${(answer.data as { uid: string }).uid}`;
}

/** Reads and validates the body of a route. Only the member that is kept as text may hold strings that Postgres cannot store. */
function bodyReader({ body: schema, raw }: Route, limit: number): (request: IncomingMessage) => Promise<Pick<AccountCall, 'body' | 'raw'>> {
  if (!schema) return () => Promise.resolve({ body: undefined, raw: '' });
  const validate = bodyValidator(schema);
  return async (request) => {
    const { value, text } = await readBody(request, limit);
    assertValid(validate(value));
    assertValid(unstorableStrings(raw === undefined ? value : { ...(value as object), [raw]: null }));
    return { body: value, raw: raw === undefined ? '' : (rawJsonValue(text, raw) ?? '') };
  };
}
