import type { IncomingMessage } from 'node:http';
import type { Context, Next } from 'koa';
import { GatewayError } from '@gateway/core/errors';
import { send } from './response.js';

/**
 * Responds with 400 to several Host headers or an invalid one, because a proxy in front could have
 * used a different one. Node itself rejects HTTP/1.1 requests without one.
 * https://www.rfc-editor.org/rfc/rfc9112#section-3.2
 */
export function requireOneHost(ctx: Context, next: Next): Promise<void> | void {
  const problem = problemOf(ctx.req);
  if (problem === undefined) return next();
  const { message, code, fix, httpStatus } = new GatewayError('host_header_invalid', { problem });
  ctx.set('connection', 'close');
  send(ctx, httpStatus, { status: false, message, data: null, code, fix });
}

function problemOf({ rawHeaders, headers }: IncomingMessage): string | undefined {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]!.length === 4 && rawHeaders[at]!.toLowerCase() === 'host') hosts++;
  if (hosts > 1) return `${hosts} Host headers`;
  return /[\s,/?#@\\]/.test(headers.host ?? '') ? 'a Host header that is no host' : undefined;
}
