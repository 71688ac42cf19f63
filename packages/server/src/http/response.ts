import { randomBytes } from 'node:crypto';
import type { Context, Next } from 'koa';
import { isGatewayError, type InvalidField } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';

export interface ApiAnswer {
  readonly message: string;
  readonly data: unknown;
  readonly status?: number;
  /** The audit log entry's organisation, if the path names none. */
  readonly organisationId?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
}

interface ResponseEnvelope {
  readonly status: boolean;
  readonly message: string;
  readonly data: unknown;
  readonly code?: string;
  readonly fix?: string;
  readonly errors?: readonly InvalidField[];
  readonly request_id?: string;
}

/** Sends JSON that must not be cached. */
export function send(ctx: Context, status: number, envelope: ResponseEnvelope): void {
  ctx.status = status;
  ctx.type = 'application/json';
  ctx.set('cache-control', 'no-store');
  ctx.body = stringify(envelope);
}

/**
 * Turns errors into responses. An unexpected error is logged; the client gets only the request id.
 */
export function sendErrors({ log, challenge }: { log: Log; challenge: string }) {
  return async (ctx: Context, next: Next): Promise<void> => {
    try {
      await next();
    } catch (error) {
      if (isGatewayError(error) && error.httpStatus !== 500) {
        const { httpStatus, message, code, fix, details } = error;
        // For Basic, the browser would prompt before the page can.
        if (httpStatus === 401)
          ctx.set('www-authenticate', ctx.get('sec-fetch-dest') === 'empty' ? 'Bearer' : challenge);
        if (!ctx.req.complete) endUnread(ctx, code);
        const { retryAfterSeconds } = details as { readonly retryAfterSeconds?: number };
        if (retryAfterSeconds !== undefined) ctx.set('retry-after', String(retryAfterSeconds));
        const errors = isGatewayError(error, 'invalid_request')
          ? { errors: error.details.problems }
          : {};
        send(ctx, httpStatus, { status: false, message, data: null, code, fix, ...errors });
        return;
      }
      const requestId = String(ctx.state['requestId']);
      log.error(
        { request_id: requestId, method: ctx.method, path: ctx.path, error },
        'A request failed with an internal error.',
      );
      send(ctx, 500, {
        status: false,
        message: 'internal error; quote request_id when you report it',
        data: null,
        code: 'internal',
        fix: `look for request_id ${requestId} in the log of the server`,
        request_id: requestId,
      });
    }
  };
}

/**
 * A client can continue to send the body of a refused request for this time: closing immediately
 * would lose the response.
 */
const DRAINED_MS = 5_000;

function endUnread({ req, res }: Context, code: string): void {
  if (code === 'body_slow') res.shouldKeepAlive = false;
  else setTimeout(() => req.complete || req.destroy(), DRAINED_MS).unref();
}

// Random, so that no user's string matches it.
const MARK = `raw-json-${randomBytes(16).toString('hex')}-`;
const MARKED = new RegExp(`"${MARK}(\\d+)"`, 'g');
let raw: string[] = [];

/** JSON text for a response: `1.10` and integers above 2^53 keep their digits. */
export class RawJson {
  constructor(readonly text: string) {}

  toJSON(): string {
    return MARK + String(raw.push(this.text) - 1);
  }
}

/**
 * Returns JSON text with each `RawJson` unchanged, at any depth. A replacer function would be
 * called for every member.
 */
export function stringify(value: unknown): string {
  raw = [];
  const text = JSON.stringify(value);
  return raw.length === 0 ? text : text.replace(MARKED, (_, index: string) => raw[Number(index)]!);
}
