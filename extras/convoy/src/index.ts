// Convoy's clients parse responses strictly and send no header that identifies them, so they have a
// base path. Their rules in the API itself would make it less strict for everyone.
import type { ConvoyPackage, SpokenRoute } from '@gateway/server/dialect';
import { answerOf } from './answers.js';
import { queryOf, rewriteBody } from './requests.js';

export const speakConvoy: ConvoyPackage['speakConvoy'] = (rootPath) => {
  const prefix = `${rootPath}/convoy/api/v1/`;
  const translate: ReturnType<ConvoyPackage['speakConvoy']> = async (ctx, next) => {
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
  return (ctx, next) =>
    ctx.path.startsWith(prefix) ? (translate(ctx, next) as Promise<void>) : next();
};

export const dialectOf: ConvoyPackage['dialectOf'] = (ctx, route) => {
  if (!ctx.state['isConvoy']) return undefined;
  return {
    query: (query) => queryOf(route, query),
    body: (body) => rewriteBody(route.body?.title, body),
    answer: (answer) => ({ ...answerOf(route.data, answer), status: statusOf(route) }),
  };
};

/**
 * Convoy clients require 201 for a creation, even of a duplicate, and for a changed event type; 202
 * for other changes.
 */
function statusOf({ method, path, status = 200 }: SpokenRoute): number {
  if (method === 'get' || method === 'delete' || status !== 200) return status;
  if (path.startsWith('/event-types/:id')) return 201;
  return CHANGES.test(path) ? 202 : 200;
}

const CHANGES = /^(\/(endpoints|sources|subscriptions)\/:id(\/(pause|activate|toggle_status))?)?$/;
