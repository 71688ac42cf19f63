import { send } from '../../http/response.js';
import { OUR_OWN } from '../dialect.js';
import { editableAt, etagOf } from '../preconditions.js';
import { showOfCreated } from '../route.js';
import type { RouteStep } from './step.js';

export const chooseDialect: RouteStep =
  (route, { convoy }) =>
  (it) => {
    it.dialect = convoy?.dialectOf(it.ctx, route) ?? OUR_OWN;
  };

export const answer: RouteStep = (route, { routes, config, links }) => {
  const hasLocation = showOfCreated(route, routes) !== undefined;
  const isEditable = editableAt(route, routes) !== undefined;
  /**
   * A URL if the public host is known, otherwise a path.
   * https://www.rfc-editor.org/rfc/rfc9110#name-location
   */
  const locationOf = (at: string, data: unknown) => {
    const path = at.slice(config.root_path.length).replace(/\/+$/, '');
    const collection =
      route.createsIn === undefined ? path : path.slice(0, -route.path.length) + route.createsIn;
    return `${links.base}${collection}/${(data as { uid: string }).uid}`;
  };
  return ({ ctx, dialect, ignored, answer: own }) => {
    const etag = isEditable ? etagOf(own) : undefined;
    if (etag !== undefined) ctx.set('etag', etag);
    const { status = route.status ?? 200, headers, message, data } = dialect.answer(own);
    if (headers) ctx.set(headers);
    if (status === 201 && hasLocation) ctx.set('location', locationOf(ctx.path, data));
    const note = ignored.length === 0 ? '' : `; ignored: ${ignored.join(', ')}`;
    send(ctx, status, { status: true, message: message + note, data });
  };
};
