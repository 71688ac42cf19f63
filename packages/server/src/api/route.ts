import type { IncomingHttpHeaders } from 'node:http';
import type { Static, TObject, TSchema } from '@sinclair/typebox';
import { GatewayError } from '@gateway/core/errors';
import type { ProjectRow } from '@gateway/store/config';
import type { Page, PageRequest } from '@gateway/store/pagination';
import type { Caller } from '../auth/authenticate.js';
import { pageRequest, pageView, type pageQuery } from '../http/list-query.js';
import type { Answer } from '../http/response.js';
import type { ServerContext } from './server-context.js';

/** A request that passed authentication and validation. */
export interface AccountCall<Body = unknown, Query = unknown> extends ServerContext {
  readonly caller: Caller;
  /** Parameters of the path. */
  readonly params: Readonly<Record<string, string>>;
  /** The parameter `:id`; empty when the path has none. */
  readonly id: string;
  readonly body: Body;
  /** Text of the member that the declaration names in `raw`. */
  readonly raw: string;
  readonly query: Query;
  readonly headers: IncomingHttpHeaders;
}

/** A request for a project that the caller may reach. */
export interface ProjectCall<Body = unknown, Query = unknown> extends AccountCall<Body, Query> {
  readonly project: ProjectRow;
}

interface Declaration {
  readonly method: 'get' | 'post' | 'put' | 'delete';
  /** Below `/api/v1`, or for project routes below `/api/v1/projects/:project_id`. */
  readonly path: string;
  readonly summary: string;
  readonly body?: TSchema;
  /** Member of the body that is kept as text, byte for byte. */
  readonly raw?: string;
  readonly query?: TObject;
  /** Path of the collection that gets the created resource, when it is not that of the route. */
  readonly createsIn?: string;
  /** Status of success; 200 by default. */
  readonly status?: 200 | 201;
}

/** A route of the management API as data: it is mounted, validated and documented from here. */
export type Route = Declaration &
  (
    | { readonly reach: 'account'; readonly run: (call: AccountCall) => Promise<Answer> }
    | { readonly reach: 'project'; readonly run: (call: ProjectCall) => Promise<Answer> }
  );

type BodyOf<It extends Declaration> = It extends { body: infer Body extends TSchema } ? Static<Body> : undefined;
type QueryOf<It extends Declaration> = It extends { query: infer Query extends TObject } ? Static<Query> : Record<never, never>;

/** A route outside any project. */
export function accountRoute<const It extends Declaration>(
  declaration: It,
  run: (call: AccountCall<BodyOf<It>, QueryOf<It>>) => Promise<Answer>,
): Route {
  return { ...declaration, reach: 'account', run: run as (call: AccountCall) => Promise<Answer> };
}

/** A route of one project. */
export function projectRoute<const It extends Declaration>(
  declaration: It,
  run: (call: ProjectCall<BodyOf<It>, QueryOf<It>>) => Promise<Answer>,
): Route {
  return { ...declaration, reach: 'project', run: run as (call: ProjectCall) => Promise<Answer> };
}

/** A route of one project that lists resources by page. `message` names the list; `query` includes `pageQuery`. */
export function listRoute<Row, Query extends TObject<typeof pageQuery>>(
  { message, ...declaration }: { path: string; summary: string; query: Query; message: string },
  list: (call: ProjectCall<undefined, Static<Query>>, page: PageRequest) => Promise<Page<Row>>,
  view: (row: Row, call: ProjectCall) => unknown,
): Route {
  const run = async (call: ProjectCall) => {
    const request = pageRequest(call.query as Static<TObject<typeof pageQuery>>);
    const page = await list(call as ProjectCall<undefined, Static<Query>>, request);
    return { message, data: pageView(page, request, (row) => view(row, call)) };
  };
  return { ...declaration, method: 'get', reach: 'project', run };
}

/** Returns the row; throws `not_found` when there is none, or nothing was deleted. */
export function found<Row>(row: Row | undefined | false, thing: string, id: string): Row {
  if (row === undefined || row === false) throw new GatewayError('not_found', { thing, id });
  return row;
}

/** A row of the store in the shape of the API. */
export function withUid<Row extends { readonly id: string }>({ id, ...row }: Row): { uid: string } & Omit<Row, 'id'> {
  return { uid: id, ...row };
}
