import { randomBytes } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Context, Next } from 'koa';
import { isGatewayError, type ConflictCode, type InvalidField } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';

export interface ApiAnswer {
  readonly message: string;
  readonly data: unknown;
  readonly status?: number;
  /** For the audit entry, if the path contains no organisation. */
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
  readonly conflict?: ConflictCode;
  readonly request_id?: string;
}

/** The response must not be cached. */
export function send(ctx: Context, status: number, envelope: ResponseEnvelope): void {
  ctx.status = status;
  ctx.type = 'application/json';
  ctx.set('cache-control', 'no-store');
  ctx.body = stringify(envelope);
}

/** Users of a portal link read no logs or settings. */
const OWNER_FIX = 'contact the sender of the messages, and quote the code';

/**
 * An unexpected error is logged; the client gets only the request id. A portal link gets the codes,
 * and texts only about the fields it sent.
 */
export function sendErrors({ log, challenge }: { log: Log; challenge: string }) {
  return async (ctx: Context, next: Next): Promise<void> => {
    try {
      await next();
    } catch (error) {
      const isPortal = ctx.state['isPortal'] === true;
      if (isGatewayError(error) && error.httpStatus !== 500) {
        const { httpStatus, message, code, fix, details } = error;
        // A Basic challenge would make the browser ask for a password before the page can, so
        // fetches get `Bearer`.
        if (httpStatus === 401)
          ctx.set('www-authenticate', ctx.get('sec-fetch-dest') === 'empty' ? 'Bearer' : challenge);
        if (!ctx.req.complete) endUnread(ctx, code);
        const { retryAfterSeconds } = details as { readonly retryAfterSeconds?: number };
        if (retryAfterSeconds !== undefined) ctx.set('retry-after', String(retryAfterSeconds));
        const { conflict } = details as { readonly conflict?: ConflictCode };
        const codes = {
          code,
          ...(isGatewayError(error, 'invalid_request') && { errors: error.details.problems }),
          ...(conflict && { conflict }),
        };
        const texts =
          isPortal && code !== 'invalid_request'
            ? { message: STATUS_CODES[httpStatus]!, fix: OWNER_FIX }
            : { message, fix };
        send(ctx, httpStatus, { status: false, data: null, ...texts, ...codes });
        return;
      }
      const requestId = String(ctx.state['requestId']);
      log.error(
        { request_id: requestId, method: ctx.method, path: ctx.path, error },
        'Request failed with an internal error.',
      );
      send(ctx, 500, {
        status: false,
        message: 'internal error; quote request_id when you report it',
        data: null,
        code: 'internal',
        fix: isPortal ? OWNER_FIX : `look for request_id ${requestId} in the log of the server`,
        request_id: requestId,
      });
    }
  };
}

/**
 * Until then the client can finish the body of a rejected request. Closing the connection
 * immediately would lose the response.
 */
const DRAINED_MS = 5_000;

function endUnread({ req, res }: Context, code: string): void {
  if (code === 'body_slow') res.shouldKeepAlive = false;
  else setTimeout(() => req.complete || req.destroy(), DRAINED_MS).unref();
}

// Random, so that no user's string can match it.
const MARK = `raw-json-${randomBytes(16).toString('hex')}-`;
const MARKED = new RegExp(`"${MARK}(\\d+)"`, 'g');
let raw: string[] = [];

/** Unchanged in a response, such as `1.10` or an integer above 2^53. */
export class RawJson {
  constructor(readonly text: string) {}

  toJSON(): string {
    return MARK + String(raw.push(this.text) - 1);
  }
}

/** Uses no replacer function, which would be called for every property. */
export function stringify(value: unknown): string {
  raw = [];
  const text = JSON.stringify(value);
  return raw.length === 0 ? text : text.replace(MARKED, (_, index: string) => raw[Number(index)]!);
}
