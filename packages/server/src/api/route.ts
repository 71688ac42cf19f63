import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Static, TObject, TSchema } from '@sinclair/typebox';
import { GatewayError } from '@gateway/core/errors';
import type { ProjectRow, Role } from '@gateway/store/config';
import type { Membership } from '@gateway/store/people';
import type { PageRequest, PageResult } from '@gateway/store/pagination';
import type { ShardPlanes } from '@gateway/store/shards';
import type { Access } from '../auth/access.js';
import type { Caller } from '../auth/process-credentials.js';
import { pageOf, pageRequest, pageView, type pageQuery } from '../http/list-query.js';
import type { ApiAnswer } from '../http/response.js';
import type { AppContext } from './context.js';
import { camel } from './resources.js';

export interface OpenCall<Body = unknown, Query = unknown> extends Omit<AppContext, 'admission'> {
  readonly request: IncomingMessage;
  readonly requestId: string;
  readonly params: Readonly<Record<string, string>>;
  readonly id: string;
  readonly body: Body;
  /** The body property named by `raw`, or an empty string. */
  readonly raw: string;
  readonly query: Query;
  readonly headers: IncomingHttpHeaders;
}

export interface AccountCall<Body = unknown, Query = unknown> extends OpenCall<Body, Query> {
  readonly caller: Caller;
}

/** The caller has the required role in the organisation. */
export interface OrganisationCall extends AccountCall {
  readonly organisation: Membership;
}

/** The caller has the required role in the project. */
export interface ProjectCall<Body = unknown, Query = unknown> extends AccountCall<Body, Query> {
  readonly project: ProjectRow;
  /** The planes of the project's shard. */
  readonly planes: ShardPlanes;
  /**
   * Uses a read replica of `planes`, whose data is a few seconds old, or `planes` itself. Only for
   * lists, searches and metrics: what a caller has just written may be missing.
   */
  readonly read: <T>(work: (planes: ShardPlanes) => Promise<T>) => Promise<T>;
  /** Set for callers with a portal link. */
  readonly ownerId: string | undefined;
}

interface Calls {
  readonly open: OpenCall;
  readonly account: AccountCall;
  readonly organisation: OrganisationCall;
  readonly project: ProjectCall;
}

/** A route reads only the properties of its reach. */
export type AnyCall = ProjectCall<never, never> & OrganisationCall;

interface Options {
  readonly body?: TSchema;
  /** This body property is preserved byte for byte. */
  readonly raw?: string;
  /** The route may work for seconds; see `longReads`. */
  readonly isLong?: true;
  /** The route validates the elements of this list itself, so that it can answer each. */
  readonly each?: string;
  /** `ingest.max_message_bytes` limits the body. */
  readonly carriesMessage?: true;
  /**
   * The route creates events, which commit in groups. Many more of these requests may run
   * concurrently, and they count towards `limits.events_per_second`.
   */
  readonly createsEvents?: true;
  readonly query?: TObject;
  /** The schema of `data`, or of a list's row. If omitted, `data` is null. */
  readonly data?: TSchema;
  /** The collection of the created resource, if it is not the route's path. */
  readonly createsIn?: string;
  readonly status?: 200 | 201;
  /** Other statuses with the same response schema. */
  readonly alsoStatus?: readonly number[];
  /** The client's method, if not derived from the method and path. */
  readonly name?: string;
  /**
   * By default `viewer` for reads and `member` for other methods. `instance` admits process
   * credentials and instance admins.
   */
  readonly role?: Role | 'instance';
  readonly needsPerson?: true;
  readonly admitsProject?: true;
  readonly portal?: Access['portal'];
  /** Set for routes that change only events. */
  readonly isAudited?: false;
}

/** Mounting, validation, the OpenAPI document and the client are derived from it. */
export interface Route extends Options {
  readonly method: Method;
  /**
   * Below `/api/v1`, or below `/organisations/:organisation_id` or `/projects/:project_id` for
   * routes with that reach.
   */
  readonly path: string;
  readonly summary: string;
  /** None, any caller, or access to the path's organisation or project. */
  readonly reach: keyof Calls;
  readonly run: (call: AnyCall) => Promise<ApiAnswer>;
}

type Method = 'get' | 'post' | 'put' | 'delete';
/** Such as `GET /endpoints`. The path is omitted for the project or organisation itself. */
type Name = `${Uppercase<Method>}${'' | ` /${string}`}`;
type CallOf<Reach extends keyof Calls, It extends Options> = Calls[Reach] & {
  readonly body: It extends { body: infer Body extends TSchema } ? Static<Body> : undefined;
  readonly query: It extends { query: infer Query extends TObject }
    ? Static<Query>
    : Record<never, never>;
};

/** @param of the path to prefix, if not the route's own */
export function pathOf({ reach, path }: Pick<Route, 'reach' | 'path'>, of = path): string {
  return (
    {
      open: '',
      account: '',
      organisation: '/organisations/:organisation_id',
      project: '/projects/:project_id',
    }[reach] + of
  );
}

export function showOfCreated(route: Route, routes: readonly Route[]): Route | undefined {
  const collection = pathOf(route, route.createsIn);
  return routes.find(
    (it) => it.method === 'get' && /^(.*)\/:\w+$/.exec(pathOf(it))?.[1] === collection,
  );
}

/** The first part of the path, in camel case. */
export function resourceOf({ reach, path }: Pick<Route, 'reach' | 'path'>): string {
  return camel((path === '' ? pathOf({ reach, path }) : path).split('/')[1]!);
}

export function accessOf(route: Route): Access {
  const { method, role, needsPerson, admitsProject, portal } = route;
  return {
    role: role === 'instance' ? 'owner' : (role ?? (method === 'get' ? 'viewer' : 'member')),
    scope: `${resourceOf(route)}:${method === 'get' || role === 'viewer' ? 'read' : 'write'}`,
    ...(needsPerson && { needsPerson }),
    ...(admitsProject && { admitsProject }),
    ...(portal && { portal }),
  };
}

const DONE = { get: '', post: ' created', put: ' updated', delete: ' deleted' } as const;

interface ItemOptions extends Options {
  /** Used in errors and messages. */
  readonly thing: string;
  /** By default the resource and the action, such as `source deleted`. */
  readonly message?: string | ((row: never) => string);
}

type Ran = ApiAnswer | Promise<ApiAnswer>;

interface ListOptions extends Pick<
  Options,
  'role' | 'needsPerson' | 'admitsProject' | 'portal' | 'name'
> {
  readonly title: string;
  readonly data?: TSchema;
  /** Pages may end before they are full, with `searched_to`. */
  readonly isSearched?: true;
}

function routesOf<Reach extends keyof Calls>(reach: Reach) {
  function route<const It extends Options>(
    name: Name,
    summary: string,
    options: It,
    run: (call: CallOf<Reach, It>) => Ran,
  ): Route {
    const [method = '', path = ''] = name.split(' ');
    return {
      method: method.toLowerCase() as Method,
      path,
      summary,
      ...options,
      reach,
      run: async (call) => run(call),
    };
  }

  /**
   * A route for a single resource, whose id is the last parameter of the path. Throws `not_found`
   * if `work` returns undefined or false. By default, a route with `data` shows the whole row, and its `id` as
   * `uid`.
   */
  function item<const It extends ItemOptions, Row>(
    name: Name,
    summary: string,
    { thing, message, ...options }: It,
    work: (call: CallOf<Reach, It>) => Promise<Row | undefined | false>,
    view: (row: Row, call: CallOf<Reach, It>) => unknown = options.data ? shown : () => null,
  ): Route {
    const declared: Route = route(name, summary, options as Options, async (given) => {
      const call = given as CallOf<Reach, It>;
      const row = found(await work(call), thing, Object.values(call.params).at(-1)!);
      const text = typeof message === 'function' ? message(row as never) : message;
      return { message: text ?? thing + DONE[declared.method], data: await view(row, call) };
    });
    return declared;
  }

  /** `title` is the response's message; `query` must include `pageQuery`. */
  function list<Row, Query extends TObject<typeof pageQuery>>(
    path: string,
    summary: string,
    { query, title, data: row, isSearched, ...access }: { query: Query } & ListOptions,
    read: (call: CallOf<Reach, { query: Query }>, page: PageRequest) => Promise<PageResult<Row>>,
    view: (row: Row, call: CallOf<Reach, { query: Query }>) => unknown = shown,
  ): Route {
    const options = { query, ...(row && { data: pageOf(row, isSearched) }), ...access };
    return route(`GET ${path}` as Name, summary, options, async (given) => {
      const call = given as CallOf<Reach, { query: Query }>;
      const request = pageRequest(call.query);
      const page = await read(call, request);
      return { message: title, data: pageView(page, request, (it) => view(it, call)) };
    });
  }

  return { route, item, list };
}

export const { route: openRoute } = routesOf('open');
export const { route: accountRoute, item: accountItem, list: accountList } = routesOf('account');
export const {
  route: organisationRoute,
  item: organisationItem,
  list: organisationList,
} = routesOf('organisation');
export const { route: projectRoute, item: projectItem, list: listRoute } = routesOf('project');

/** Throws `not_found` if the row is undefined or false. */
export function found<Row>(row: Row | undefined | false, thing: string, id: string): Row {
  if (row === undefined || row === false) throw new GatewayError('not_found', { thing, id });
  return row;
}

/** For running another route with the same path. */
export function withoutInput(call: AnyCall): AnyCall {
  return { ...call, body: undefined as never, query: {} as never };
}

export function withUid<Row extends { readonly id: string }>({
  id,
  ...row
}: Row): { uid: string } & Omit<Row, 'id'> {
  return { uid: id, ...row };
}

const shown = (row: unknown) => {
  const it = row as { readonly id: string };
  return it.id === undefined ? it : withUid(it);
};
