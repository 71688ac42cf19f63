// Convoy's clients parse responses strictly and send no header that identifies them, so they have a
// base path. Their rules in the API itself would make it less strict for everyone.
import type { TSchema } from '@sinclair/typebox';
import type { Context, Next } from 'koa';
import type { ApiAnswer } from '../http/response.js';
import { answerOf } from './answers.js';
import { queryOf, rewriteBody } from './requests.js';

interface Dialect {
  query(query: Readonly<Record<string, string | string[] | undefined>>): Record<string, unknown>;
  /** Changes the body in place. Returns the names of the removed fields. */
  body(body: unknown): string[];
  answer(answer: ApiAnswer): ApiAnswer;
}

interface Spoken {
  readonly method: string;
  readonly path: string;
  readonly body?: TSchema;
  readonly data?: TSchema;
  readonly status?: number;
}

const OUR_OWN: Dialect = {
  query: (query) => ({ ...query }),
  body: () => [],
  answer: (answer) => answer,
};

/**
 * The same routes below `/convoy/api/v1` with Convoy's names, such as groups for projects, and
 * status 400 for an invalid request.
 */
export function speakConvoy(rootPath: string) {
  const prefix = `${rootPath}/convoy/api/v1/`;
  const translate = async (ctx: Context, next: Next): Promise<void> => {
    const rest = ctx.path
      .slice(prefix.length)
      .replace(/^(projects\/[^/]+\/)?groups(?=\/|$)/, 'projects');
    ctx.path = `${rootPath}/api/v1/${rest}`;
    // Convoy counts the events of a replay with a separate route. Here it is a dry run.
    if (ctx.method === 'GET' && rest.endsWith('/events/countbatchreplayevents')) {
      ctx.method = 'POST';
      ctx.path = ctx.path.replace(/countbatchreplayevents$/, 'batchreplay');
      ctx.query = { ...ctx.query, dry_run: 'true' };
    }
    ctx.state['isConvoy'] = true;
    await next();
    if (ctx.status === 422) ctx.status = 400;
  };
  return (ctx: Context, next: Next): Promise<void> =>
    ctx.path.startsWith(prefix) ? translate(ctx, next) : next();
}

export function dialectOf(ctx: Context, route: Spoken): Dialect {
  if (!ctx.state['isConvoy']) return OUR_OWN;
  return {
    query: (query) => queryOf(route, query),
    body: (body) => rewriteBody(route.body?.title, body),
    answer: (answer) => ({ ...answerOf(route.data, answer), status: statusOf(route) }),
  };
}

/**
 * Convoy clients require 201 for a creation, even of a duplicate, and for a changed event type; 202
 * for other changes.
 */
function statusOf({ method, path, status = 200 }: Spoken): number {
  if (method === 'get' || method === 'delete' || status !== 200) return status;
  if (path.startsWith('/event-types/:id')) return 201;
  return CHANGES.test(path) ? 202 : 200;
}

const CHANGES = /^(\/(endpoints|sources|subscriptions)\/:id(\/(pause|activate|toggle_status))?)?$/;
