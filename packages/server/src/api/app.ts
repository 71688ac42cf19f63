import { randomUUID } from 'node:crypto';
import Koa, { type Context, type Middleware, type Next } from 'koa';
import { Router, type RouterContext } from '@koa/router';
import type { TSchema } from '@sinclair/typebox';
import { GatewayError } from '@gateway/core/errors';
import { metricsResponse } from '@gateway/core/exposition';
import type { Log } from '@gateway/core/logging';
import { isId } from '@gateway/core/events';
import { rawJsonValue } from '@gateway/core/json';
import { healthAnswer } from '../health/healthz.js';
import { requireOneHost } from '../http/host.js';
import { sendErrors, send, type ApiAnswer } from '../http/response.js';
import {
  reachAccount,
  reachOrganisation,
  reachProject,
  requireInstanceAdmin,
  requireScope,
} from '../auth/access.js';
import { authenticate } from '../auth/authenticate.js';
import { ownedBy } from '../auth/owned.js';
import type { ProjectRow } from '@gateway/store/config';
import { DEFAULT_SHARD, type ShardPlanes } from '@gateway/store/shards';
import type { Effect } from '../health/database-outage.js';
import { largestBody, parseBody, requireJson, unstorableStrings } from '../http/body.js';
import { object, assertValid, bodyValidator, queryValidator, takeIgnored } from '../http/schema.js';
import { measureRequests } from './measure.js';
import { auditor } from './audit.js';
import { missingConvoy, OUR_OWN, type ConvoyPackage } from './dialect.js';
import { createsOnce, runOnce } from './idempotency.js';
import { etagOf, runIfMatch, editableAt } from './preconditions.js';
import { RESOURCES } from './resources.js';
import {
  accessOf,
  pathOf,
  resourceOf,
  showOfCreated,
  type AccountCall,
  type AnyCall,
  type AppContext,
  type Route,
} from './route.js';
import { apiRouters, methodsByPath } from './routers.js';
import { LARGE_BYTES, type ReleaseShare } from './shares.js';

/** Middleware runs in the order below. The routers in `pages` need no API key. */
export function createApp(
  routes: readonly Route[],
  pages: {
    readonly documents: Router | undefined;
    readonly docs: Middleware | undefined;
    readonly dashboard: Middleware | undefined;
    readonly ingest: Router;
    readonly convoy: ConvoyPackage | undefined;
  },
  context: AppContext,
  isClosing: () => boolean,
): Koa {
  const { config, log, plugins, credentials } = context;
  const app = new Koa();
  // `sendErrors` responds to failed requests. Koa emits this event for connection errors, after
  // which no response can be sent.
  app.on('error', (error: unknown) => log.debug({ error }, 'Could not send a response.'));
  app.use(identifyRequests(log));
  app.use(requireOneHost);
  // Requests for pages are not API requests. The dashboard answers any path outside the API.
  if (pages.docs) app.use(pages.docs);
  if (pages.dashboard) app.use(pages.dashboard);
  if (plugins.metrics) app.use(measureRequests(plugins, config.root_path));
  if (pages.convoy) app.use(pages.convoy.speakConvoy(config.root_path));
  app.use(sendErrors({ log, challenge: credentials.challenge }));

  // Probes and scrapers bypass the reverse proxy and do not know its prefix, so these paths are
  // also served without it.
  const paths = (path: string) => [...new Set([path, config.root_path + path])];
  const open = new Router();
  const metrics = metricsResponse(context);
  open.get(paths('/healthz'), healthAnswer(context, isClosing));
  open.get(paths('/metrics'), async (ctx) => {
    const { status, headers, body } = await metrics(ctx.req);
    ctx.status = status;
    ctx.set(headers);
    ctx.body = body;
  });
  const methodsAt = methodsByPath(`${config.root_path}/api/v1`, routes);
  // The API is mounted first because most requests go to it, and each earlier router would try all
  // its paths on them.
  app.use(mount(routes, context, methodsAt, pages.convoy));
  app.use(pages.ingest.routes());
  app.use(open.routes());
  if (pages.documents) app.use(pages.documents.routes());
  app.use((ctx) => answerUnknown(ctx, methodsAt(ctx.path), config.root_path));
  return app;
}

function identifyRequests(log: Log) {
  const logged = async (ctx: Context, next: Next): Promise<void> => {
    const startedAtMs = performance.now();
    await next();
    const { method, path, status, state } = ctx;
    const durationMs = Math.round(performance.now() - startedAtMs);
    log.debug(
      { request_id: String(state['requestId']), method, path, status, duration_ms: durationMs },
      'request',
    );
  };
  return (ctx: Context, next: Next): Promise<void> => {
    const requestId = randomUUID();
    ctx.state['requestId'] = requestId;
    ctx.res.setHeader('x-request-id', requestId);
    return log.debugging ? logged(ctx, next) : next();
  };
}

/** @param ofApi the API's methods at the path */
function answerUnknown(ctx: Context, ofApi: readonly string[], rootPath: string): void {
  const matched =
    (ctx as { matched?: readonly { readonly path: string; readonly methods: readonly string[] }[] })
      .matched ?? [];
  // API paths with parameters are excluded: the router accepts any string for a parameter, but only
  // ids are valid. `ofApi` already contains the methods of matching API paths.
  const pages = matched.filter(
    ({ path }) => !path.startsWith(`${rootPath}/api/v1/`) || !path.includes(':'),
  );
  const others = [...new Set(pages.flatMap(({ methods }) => methods))]
    .filter((method) => method !== 'HEAD')
    .sort();
  const allowed = ofApi.length > 0 ? ofApi : others;
  if (allowed.length === 0) {
    const isConvoy = ctx.path.startsWith(`${rootPath}/convoy/`);
    throw new GatewayError('not_found', {
      thing: `path ${ctx.path}`,
      fix:
        (isConvoy && missingConvoy()?.toString()) ||
        `check the path; the management API is under ${rootPath}/api/v1${rootPath === '' ? '' : ' (root_path)'}`,
    });
  }
  ctx.set('allow', allowed.join(', '));
  if (ctx.method === 'OPTIONS') {
    ctx.status = 204;
    return;
  }
  throw new GatewayError('method_not_allowed', {
    method: ctx.method,
    path: ctx.path,
    allowed: allowed.join(' or '),
  });
}

const LOOK_UP = { effect: 'looks_up', withinMs: 10_000 } as const;
const RUN_MS = 40_000;

/**
 * Per request: authentication, rate limit, access, a share of the owner's concurrency, validation,
 * then the route.
 */
function mount(
  routes: readonly Route[],
  context: AppContext,
  methodsAt: ReturnType<typeof methodsByPath>,
  convoy: ConvoyPackage | undefined,
): Middleware {
  const {
    ask,
    limit,
    portalLimit,
    receive,
    takeShare,
    keyUse,
    configCache,
    shardOf: _shardOf,
    read,
    requirePace,
    ...served
  } = context;
  const { config } = context;
  const routers = apiRouters(`${config.root_path}/api/v1`);
  const audit = auditor(routes);
  const once = runOnce(context);
  // The configuration follows a move within a second, cached records of projects later.
  const shardOf = ({ id, shard }: ProjectRow) =>
    context.shards.find(configCache.projects.get(id)?.shard ?? shard);
  for (const route of routes) {
    const validBody = bodyValidation(route);
    // Bodies without a message contain only configuration, so a low limit is enough.
    const bodyLimit = route.carriesMessage ? largestBody(config) : LARGE_BYTES;
    const validateQuery = queryValidator(route.query ?? object({}));
    const effect = effectOf(route);
    const configures = route.method !== 'get' && RESOURCES[resourceOf(route)]?.isRouting !== false;
    const hasLocation = showOfCreated(route, routes) !== undefined;
    const shown = editableAt(route, routes);
    const access = accessOf(route);
    const audited = audit(route);
    const isOnce = createsOnce(route);
    const requireOwned = ownedBy(route);
    const admit = async (
      ctx: RouterContext,
    ): Promise<
      Partial<Pick<AnyCall, 'caller' | 'project' | 'planes' | 'ownerId' | 'organisation'>>
    > => {
      if (route.reach === 'open') return {};
      const caller = await authenticate(ctx.req, context);
      keyUse.record(caller);
      ctx.state['isPortal'] = caller.type === 'portal';
      await (caller.type === 'portal' ? portalLimit : limit)(
        caller,
        ({ limit: most, remaining, resetSeconds }) => {
          ctx.set({
            'ratelimit-limit': `${most}`,
            'ratelimit-remaining': `${remaining}`,
            'ratelimit-reset': `${resetSeconds}`,
          });
        },
      );
      requireScope(caller, access);
      const { project_id: projectId = '', organisation_id: organisationId = '' } = ctx.params;
      if (route.reach === 'project') {
        const project = await reachProject(caller, projectId, access, context);
        const { planes } = await shardOf(project);
        if (caller.type !== 'portal') return { caller, project, planes };
        const { owner_id: ownerId } = caller;
        await requireOwned({ project, planes, ownerId, id: ctx.params['id'] });
        return { caller, project, planes, ownerId };
      }
      if (route.reach === 'account') {
        if (route.role === 'instance') await requireInstanceAdmin(caller, context);
        else reachAccount(caller, access);
        return { caller };
      }
      return {
        caller,
        organisation: await reachOrganisation(caller, organisationId, access, context),
      };
    };
    routers.of(pathOf(route))[route.method](pathOf(route), async (ctx: RouterContext) => {
      const { params, headers, req: request } = ctx;
      const dialect = convoy?.dialectOf(ctx, route) ?? OUR_OWN;
      const [, stray] =
        Object.entries(params).find(([param, id]) => param !== 'name' && !isId(id)) ?? [];
      // The router also matches `/events/batch` with `/events/:id`, which has different methods.
      if (stray !== undefined && methodsAt(ctx.path).length > 0)
        return answerUnknown(ctx, methodsAt(ctx.path), config.root_path);
      const admitted = await ask(() => admit(ctx), LOOK_UP);
      const { caller, organisation, project, planes, ownerId } = admitted;
      if (stray !== undefined) throw new GatewayError('not_found', { thing: 'id', id: stray });
      const query = dialect.query(ctx.query);
      assertValid(validateQuery(query));
      const paced = route.createsEvents ? project?.id : undefined;
      if (paced !== undefined) requirePace(paced);
      if (route.body) requireJson(request);
      // Received before a share is taken, so that a slow upload does not block other requests.
      const sender = { id: caller?.id ?? context.addressOf(request), isStranger: !caller };
      const received = route.body && (await receive(request, { limit: bodyLimit, sender }));
      const owner =
        caller?.type === 'portal' ? `links of ${project!.id}` : (project?.id ?? sender.id);
      let release: ReleaseShare;
      try {
        release = await takeShare(owner, {
          bytes: received?.bytes.length ?? 0,
          createsEvents: route.createsEvents === true,
        });
      } finally {
        received?.release();
      }
      try {
        if (paced !== undefined) requirePace(paced);
        const { body, raw, ignored } = validBody(received?.bytes, dialect.body);
        // `served` is spread last: on Node 20, each property after a spread costs half a
        // microsecond.
        const call: AnyCall = {
          request,
          requestId: String(ctx.state['requestId']),
          params,
          id: params['id'] ?? '',
          query: query as never,
          headers,
          caller: caller!,
          project: project!,
          planes: planes!,
          read: readerOf(planes!, read),
          organisation: organisation!,
          ownerId,
          body: body as never,
          raw,
          ...served,
        };
        const work = () => (audited ? audited(call) : route.run(call));
        const change = route.isLong ? () => context.longReads(owner, work) : work;
        const run = isOnce ? () => once(route, call, change) : change;
        const isConditional = shown && route.method !== 'get' && headers['if-match'] !== undefined;
        const own = await ask(isConditional ? () => runIfMatch(shown, call, run) : run, {
          effect,
          withinMs: RUN_MS,
          ...(project && { shards: async () => [await shardOf(project)] }),
        }).finally(() => {
          if (project && configures) void configCache.invalidate(project.id);
        });
        const etag = shown && etagOf(own);
        if (etag !== undefined) ctx.set('etag', etag);
        const answer = dialect.answer(own);
        const status = answer.status ?? route.status ?? 200;
        if (answer.headers) ctx.set(answer.headers);
        if (status === 201 && hasLocation)
          ctx.set('location', location(ctx, route, { answer, context }));
        const message =
          ignored.length === 0
            ? answer.message
            : `${answer.message}; ignored: ${ignored.join(', ')}`;
        send(ctx, status, { status: true, message, data: answer.data });
      } finally {
        release();
      }
    });
  }
  return routers.middleware();
}

/** Replicas have only the default shard. */
function readerOf(planes: ShardPlanes, read: AppContext['read']): AnyCall['read'] {
  return planes?.shard === DEFAULT_SHARD
    ? (work) => read((replica) => work({ shard: DEFAULT_SHARD, ...replica }))
    : (work) => work(planes);
}

/**
 * A creating route commits once, as its last step; others, such as the deletion of an endpoint, can
 * continue after a commit.
 */
function effectOf({ method, status }: Route): Effect {
  if (method === 'get') return 'reads';
  return status === 201 ? 'creates' : 'changes';
}

/**
 * A URL if the public host is known, otherwise a path.
 * https://www.rfc-editor.org/rfc/rfc9110#name-location
 */
function location(
  ctx: RouterContext,
  route: Route,
  { answer, context: { config, links } }: { answer: ApiAnswer; context: AppContext },
): string {
  const path = ctx.path.slice(config.root_path.length).replace(/\/+$/, '');
  const collection =
    route.createsIn === undefined ? path : path.slice(0, -route.path.length) + route.createsIn;
  return `${links.base}${collection}/${(answer.data as { uid: string }).uid}`;
}

/** Only the property named by `raw` may contain strings that Postgres cannot store. */
function bodyValidation({
  body: schema,
  raw,
  each,
}: Route): (
  bytes: Buffer | undefined,
  rewrite: (body: unknown) => readonly string[],
) => Pick<AccountCall, 'body' | 'raw'> & { ignored: readonly string[] } {
  if (!schema) return () => ({ body: undefined, raw: '', ignored: [] });
  const validate = bodyValidator(each === undefined ? schema : withAnyElements(schema, each));
  return (bytes, rewrite) => {
    const { value, text } = parseBody(bytes!);
    const rewritten = rewrite(value);
    assertValid(validate(value));
    const ignored = [...rewritten, ...takeIgnored(schema, value)];
    assertValid(
      unstorableStrings(text, raw === undefined ? value : { ...(value as object), [raw]: null }),
    );
    return { body: value, ignored, raw: raw === undefined ? '' : (rawJsonValue(text, raw) ?? '') };
  };
}

function withAnyElements(schema: TSchema, name: string): TSchema {
  const { [name]: list, ...others } = schema['properties'] as Readonly<Record<string, TSchema>>;
  return { ...schema, properties: { ...others, [name]: { ...list!, items: {} } } };
}
