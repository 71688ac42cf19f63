import { randomBytes } from 'node:crypto';
import type { Context, Next } from 'koa';
import { isGatewayError, type InvalidField } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';

export interface Answer {
  readonly message: string;
  readonly data: unknown;
  readonly status?: number;
  /** Where the audit log has the change, when that is no organisation of the path. */
  readonly organisationId?: string;
  /** Besides those of every answer. */
  readonly headers?: Readonly<Record<string, string | string[]>>;
}

/** The shape of every response of the API. Errors add their code and fix. */
interface Envelope {
  readonly status: boolean;
  readonly message: string;
  readonly data: unknown;
  readonly code?: string;
  readonly fix?: string;
  readonly errors?: readonly InvalidField[];
  readonly request_id?: string;
}

/** Answers with JSON that must not be cached. */
export function send(ctx: Context, status: number, envelope: Envelope): void {
  ctx.status = status;
  ctx.type = 'application/json';
  ctx.set('cache-control', 'no-store');
  ctx.body = stringify(envelope);
}

/** Turns errors into responses. An unexpected error goes to the log in full; the client gets the request id only. */
export function sendErrors({ log, challenge }: { log: Log; challenge: string }) {
  return async (ctx: Context, next: Next): Promise<void> => {
    try {
      await next();
    } catch (error) {
      if (isGatewayError(error) && error.httpStatus !== 500) {
        const { httpStatus, message, code, fix, details } = error;
        // A browser would ask for the credentials of a Basic challenge itself, before the page can.
        if (httpStatus === 401) ctx.set('www-authenticate', ctx.get('sec-fetch-dest') === 'empty' ? 'Bearer' : challenge);
        if (!ctx.req.complete) endUnread(ctx, code);
        const { retryAfterSeconds } = details as { readonly retryAfterSeconds?: number };
        if (retryAfterSeconds !== undefined) ctx.set('retry-after', String(retryAfterSeconds));
        const errors = isGatewayError(error, 'invalid_request') ? { errors: error.details.problems } : {};
        send(ctx, httpStatus, { status: false, message, data: null, code, fix, ...errors });
        return;
      }
      const requestId = String(ctx.state['requestId']);
      log.error({ request_id: requestId, method: ctx.method, path: ctx.path, error }, 'A request failed with an internal error.');
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

/** How long a client may go on to send the body of a request that was refused. Closing the connection at once would lose the response to it. */
const DRAINED_MS = 5_000;

function endUnread({ req, res }: Context, code: string): void {
  if (code === 'body_slow') res.shouldKeepAlive = false;
  else setTimeout(() => req.complete || req.destroy(), DRAINED_MS).unref();
}

// Random, so that no string of a user matches it.
const MARK = `raw-json-${randomBytes(16).toString('hex')}-`;
const MARKED = new RegExp(`"${MARK}(\\d+)"`, 'g');
/** The texts of the value that `stringify` works on. */
let raw: string[] = [];

/** JSON text that goes into a response unchanged: `1.10` and integers beyond 2^53 keep their digits. */
export class RawJson {
  constructor(readonly text: string) {}

  toJSON(): string {
    return MARK + String(raw.push(this.text) - 1);
  }
}

/** Returns JSON text with each `RawJson` in it inserted unchanged, at any depth. Without a replacer function, which would be called for every member. */
export function stringify(value: unknown): string {
  raw = [];
  const text = JSON.stringify(value);
  return raw.length === 0 ? text : text.replace(MARKED, (_, index: string) => raw[Number(index)]!);
}
