import { randomUUID } from 'node:crypto';
import Koa, { type Context, type Next } from 'koa';
import { Router } from '@koa/router';
import { GatewayError } from '@gateway/core/errors';
import { metricsResponse } from '@gateway/core/exposition';
import type { Log } from '@gateway/core/logging';
import { answerErrors } from './envelope.js';
import { healthAnswer } from '../health/healthz.js';
import { measureRequests } from '../telemetry/measure.js';
import { mount } from './mount.js';
import type { Parts } from './server-context.js';
import { routes } from '../routes/index.js';

/** The HTTP application of the control plane, in the order that a request takes. */
export function createApp(parts: Parts, isClosing: () => boolean): Koa {
  const app = new Koa();
  // A client that goes away is no error of ours; everything else was answered already.
  app.on('error', (error: unknown) => parts.log.debug({ error }, 'a response could not be sent'));
  const { root_path: rootPath } = parts.config;
  app.use(logRequests(parts.log));
  if (parts.plugins.metrics) app.use(measureRequests(parts.plugins, rootPath));
  app.use(answerErrors(parts));

  // Probes and scrapers come past the reverse proxy, whose prefix they do not know.
  const prefixes = [...new Set(['', rootPath])];
  const open = new Router();
  const metrics = metricsResponse(parts);
  open.get(
    prefixes.map((prefix) => `${prefix}/healthz`),
    healthAnswer(parts, isClosing),
  );
  open.get(
    prefixes.map((prefix) => `${prefix}/metrics`),
    async (ctx) => {
      const { status, headers, body } = await metrics(ctx.req);
      ctx.status = status;
      ctx.set(headers);
      ctx.body = body;
    },
  );
  app.use(open.routes());
  app.use(mount(routes, parts).routes());
  app.use((ctx) => refuseUnknown(ctx, rootPath));
  return app;
}

/** Gives each request an id, and tells of it at debug. */
function logRequests(log: Log) {
  return async (ctx: Context, next: Next): Promise<void> => {
    const requestId = randomUUID();
    const startedAtMs = performance.now();
    ctx.state['requestId'] = requestId;
    ctx.set('x-request-id', requestId);
    await next();
    log.debug(
      {
        request_id: requestId,
        method: ctx.method,
        path: ctx.path,
        status: ctx.status,
        duration_ms: Math.round(performance.now() - startedAtMs),
      },
      'request',
    );
  };
}

/** 405 for a path that other methods know, else 404. */
function refuseUnknown(ctx: Context, rootPath: string): never {
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
