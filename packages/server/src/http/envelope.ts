import type { Context, Next } from 'koa';
import { isGatewayError, type GatewayError, type InvalidField } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import type { ProcessCredentials } from '../auth/process-credentials.js';
import { stringify } from './raw-json.js';

/** What a route answers; 200 unless its declaration or the answer says otherwise. */
export interface Answer {
  readonly message: string;
  readonly data: unknown;
  readonly status?: number;
}

/** Every answer of the API has this shape, and errors add their code and remedy. */
export interface Envelope {
  readonly status: boolean;
  readonly message: string;
  readonly data: unknown;
  readonly code?: string;
  readonly fix?: string;
  /** Of an invalid request: each mistake with its place. */
  readonly errors?: readonly InvalidField[];
  /** Of a fault of ours: what the log calls it. */
  readonly request_id?: string;
}

/** Writes an envelope. */
export function send(ctx: Context, status: number, envelope: Envelope): void {
  ctx.status = status;
  ctx.type = 'application/json';
  ctx.set('cache-control', 'no-store');
  ctx.body = stringify(envelope);
}

/** Turns whatever is thrown further in into an envelope. What nobody foresaw goes to the log whole, and to the client as an id. */
export function answerErrors({ log, credentials }: { log: Log; credentials: Pick<ProcessCredentials, 'challenge'> }) {
  return async (ctx: Context, next: Next): Promise<void> => {
    try {
      await next();
    } catch (error) {
      const requestId = String(ctx.state['requestId']);
      if (isGatewayError(error) && error.httpStatus !== 500) {
        if (error.httpStatus === 401) ctx.set('www-authenticate', credentials.challenge);
        const { retryAfterSeconds } = error.details as { readonly retryAfterSeconds?: number };
        if (retryAfterSeconds !== undefined) ctx.set('retry-after', String(retryAfterSeconds));
        send(ctx, error.httpStatus, errorEnvelope(error));
        return;
      }
      log.error({ request_id: requestId, method: ctx.method, path: ctx.path, error }, 'a request failed');
      send(ctx, 500, {
        status: false,
        message: 'the request failed for a reason that is not yours',
        data: null,
        code: 'internal',
        fix: `look for request_id ${requestId} in the log of the server`,
        request_id: requestId,
      });
    }
  };
}

function errorEnvelope(error: GatewayError): Envelope {
  const { message, code, fix } = error;
  return {
    status: false,
    message,
    data: null,
    code,
    fix,
    ...(isGatewayError(error, 'invalid_request') ? { errors: error.details.problems } : {}),
  };
}
