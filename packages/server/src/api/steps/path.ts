import type { Context } from 'koa';
import { GatewayError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import { missingConvoy } from '../dialect.js';
import { ANSWERED, type RouteStep } from './step.js';

/** The router also matches `/events/batch` with `/events/:id`, which has different methods. */
export const matchPath: RouteStep =
  (_, { methodsAt, config }) =>
  (it) => {
    const { ctx } = it;
    it.stray = Object.entries(it.call.params).find(
      ([param, id]) => param !== 'name' && !isId(id),
    )?.[1];
    if (it.stray === undefined || methodsAt(ctx.path).length === 0) return undefined;
    answerUnknown(ctx, methodsAt(ctx.path), config.root_path);
    return ANSWERED;
  };

/** After authentication, so that strangers learn nothing about ids. */
export const requireIds: RouteStep = () => (it) => {
  if (it.stray !== undefined) throw new GatewayError('not_found', { thing: 'id', id: it.stray });
};

/** @param ofApi the API's methods at the path */
export function answerUnknown(ctx: Context, ofApi: readonly string[], rootPath: string): void {
  const matched =
    (ctx as { matched?: readonly { readonly path: string; readonly methods: readonly string[] }[] })
      .matched ?? [];
  // API paths with parameters are excluded: the router accepts any string for a parameter, but only
  // ids are valid. `ofApi` already contains the methods of matching API paths.
  const pages = matched.filter(
    ({ path }) => !path.startsWith(`${rootPath}/api/v1/`) || !path.includes(':'),
  );
  const others = [...new Set(pages.flatMap(({ methods }) => methods))]
    .filter((method) => method !== 'HEAD')
    .sort();
  const allowed = ofApi.length > 0 ? ofApi : others;
  if (allowed.length === 0) {
    const isConvoy = ctx.path.startsWith(`${rootPath}/convoy/`);
    throw new GatewayError('not_found', {
      thing: `path ${ctx.path}`,
      fix:
        (isConvoy && missingConvoy()?.toString()) ||
        `check the path; the management API is under ${rootPath}/api/v1${rootPath === '' ? '' : ' (root_path)'}`,
    });
  }
  ctx.set('allow', allowed.join(', '));
  if (ctx.method === 'OPTIONS') {
    ctx.status = 204;
    return;
  }
  throw new GatewayError('method_not_allowed', {
    method: ctx.method,
    path: ctx.path,
    allowed: allowed.join(' or '),
  });
}
