import { randomUUID } from 'node:crypto';
import Koa, { type Context, type Next } from 'koa';
import { Router } from '@koa/router';
import { GatewayError } from '@gateway/core/errors';
import { metricsResponse } from '@gateway/core/exposition';
import type { Log } from '@gateway/core/logging';
import { healthAnswer } from '../health/healthz.js';
import { sendErrors } from '../http/response.js';
import { measureRequests } from './measure.js';
import { mount } from './mount.js';
import type { Route, ServerContext } from './route.js';

/** The HTTP application of the control plane. Middleware runs in the order below. */
export function createApp(routes: readonly Route[], context: ServerContext, isClosing: () => boolean): Koa {
  const { config, log, plugins, credentials } = context;
  const app = new Koa();
  // Errors were answered already; this one is about the connection.
  app.on('error', (error: unknown) => log.debug({ error }, 'A response could not be sent.'));
  app.use(logRequests(log));
  if (plugins.metrics) app.use(measureRequests(plugins, config.root_path));
  app.use(sendErrors({ log, challenge: credentials.challenge }));

  // Probes and scrapers bypass the reverse proxy and do not know its prefix.
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
  app.use(open.routes());
  app.use(mount(routes, context).routes());
  app.use((ctx) => throwUnknown(ctx, config.root_path));
  return app;
}

function logRequests(log: Log) {
  return async (ctx: Context, next: Next): Promise<void> => {
    const requestId = randomUUID();
    const startedAtMs = performance.now();
    ctx.state['requestId'] = requestId;
    ctx.set('x-request-id', requestId);
    await next();
    const { method, path, status } = ctx;
    log.debug({ request_id: requestId, method, path, status, duration_ms: Math.round(performance.now() - startedAtMs) }, 'request');
  };
}

function throwUnknown(ctx: Context, rootPath: string): never {
  const matched = (ctx as { matched?: readonly { readonly methods: readonly string[] }[] }).matched ?? [];
  const allowed = [...new Set(matched.flatMap(({ methods }) => methods))].filter((method) => method !== 'HEAD').sort();
  if (allowed.length === 0) {
    throw new GatewayError('not_found', {
      thing: `path ${ctx.path}`,
      fix: `check the path; the management API is below ${rootPath}/api/v1${rootPath === '' ? '' : ' (root_path)'}`,
    });
  }
  ctx.set('allow', allowed.join(', '));
  throw new GatewayError('method_not_allowed', { method: ctx.method, path: ctx.path, allowed: allowed.join(' or ') });
}
