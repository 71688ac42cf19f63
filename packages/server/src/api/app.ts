import { randomUUID } from 'node:crypto';
import Koa, { type Context, type Middleware, type Next } from 'koa';
import { Router } from '@koa/router';
import { metricsResponse } from '@gateway/core/exposition';
import type { Log } from '@gateway/core/logging';
import { healthAnswer } from '../health/healthz.js';
import { requireOneHost } from '../http/host.js';
import { sendErrors } from '../http/response.js';
import type { ConvoyPackage } from './dialect.js';
import { measureRequests } from './measure.js';
import { mount } from './mount.js';
import type { AppContext } from './context.js';
import type { Route } from './route.js';
import { methodsByPath } from './routers.js';
import { answerUnknown } from './steps/path.js';

/** Middleware runs in the order below. The routers in `pages` need no API key. */
export function createApp(
  routes: readonly Route[],
  pages: {
    readonly documents?: Router;
    readonly docs?: Middleware | undefined;
    readonly dashboard?: Middleware | undefined;
    readonly ingest?: Router;
    readonly keys?: Router;
    readonly convoy?: ConvoyPackage | undefined;
  },
  context: AppContext,
  isClosing = () => false,
): Koa {
  const { config, log, plugins, auth } = context;
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
  app.use(sendErrors({ log, challenge: auth.credentials.challenge }));

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
  if (pages.ingest) app.use(pages.ingest.routes());
  if (pages.keys) app.use(pages.keys.routes());
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
