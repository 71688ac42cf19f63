import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Static, TObject, TSchema } from '@sinclair/typebox';
import type { Config, Links } from '@gateway/core/config';
import type { Sealer } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import type { Functions } from '@gateway/ingest/once/functions';
import type { EventTypeCatalogue, ProjectRow, Role } from '@gateway/store/config';
import type { Membership } from '@gateway/store/people';
import type { EventCreator } from '@gateway/ingest/commit/event-creator';
import type { IntakeConfig } from '@gateway/ingest/routing/config-cache';
import type { ShardOf } from '@gateway/ingest/routing/shard-of';
import type { EventRef } from '@gateway/store/events';
import type { Kv } from '@gateway/store/kv';
import type { PageRequest, PageResult } from '@gateway/store/pagination';
import type { Database, Planes } from '@gateway/store/postgres';
import type { ShardPlanes, Shards } from '@gateway/store/shards';
import type { Access } from '../auth/access.js';
import type { AddressReader } from '../auth/client-address.js';
import type { KeyUse } from '../auth/key-use.js';
import type { LoginGuard } from '../auth/login-guard.js';
import type { OidcProvider } from '../auth/oidc/provider.js';
import type { Caller, ProcessCredentials } from '../auth/process-credentials.js';
import type { RecordCache } from '../auth/record-cache.js';
import type { RequestLimit } from '../auth/request-limit.js';
import type { SessionCookies } from '../auth/session-cookie.js';
import type { LongReads, TakeShare } from './shares.js';
import { pageOf, pageRequest, pageView, type pageQuery } from '../http/list-query.js';
import type { AskDatabase } from '../health/database-outage.js';
import type { HealthProbe } from '../health/healthz.js';
import type { ReceiveBody } from '../http/body-room.js';
import type { ApiAnswer } from '../http/response.js';
import { camel } from './resources.js';

/** The services that every route can use. */
export interface ServerContext {
  readonly config: Config;
  /** The control plane. Statements on the data plane use the `planes` or `history` of a call. */
  readonly database: Database;
  readonly shards: Shards;
  readonly kv: Kv;
  readonly plugins: ActivatedPlugins;
  readonly sealer: Sealer;
  readonly log: Log;
  readonly links: Links;
  readonly credentials: ProcessCredentials;
  readonly records: RecordCache;
  readonly tests: RequestLimit;
  readonly functionTests: RequestLimit;
  readonly resets: RequestLimit;
  readonly endpointTests: RequestLimit;
  readonly longReads: LongReads;
  readonly functions: Functions;
  readonly logins: LoginGuard;
  readonly sessions: SessionCookies;
  /** Undefined if users sign in only by password. */
  readonly oidc: OidcProvider | undefined;
  readonly addressOf: AddressReader;
  readonly events: EventCreator;
  /** The event types of projects that reject unknown types. */
  readonly catalogue: EventTypeCatalogue;
  /** Signals pending events of a shard to agents. */
  readonly signalPending: (
    events: readonly Pick<EventRef, 'projectId' | 'id'>[],
    shard: string,
  ) => void;
  readonly probeHealth: HealthProbe;
}

/** The routes' services, and those that admit requests before a route runs. */
export interface AppContext extends ServerContext {
  readonly ask: AskDatabase;
  readonly limit: RequestLimit;
  readonly portalLimit: RequestLimit;
  readonly receive: ReceiveBody;
  readonly takeShare: TakeShare;
  readonly keyUse: KeyUse;
  readonly configCache: IntakeConfig;
  readonly shardOf: ShardOf;
  /** Runs `work` on a read replica of the default shard, or on the primary. */
  readonly read: <T>(work: (planes: Planes) => Promise<T>) => Promise<T>;
  /** Throws `too_many_events` if the project exceeds `limits.events_per_second`. */
  readonly requirePace: (projectId: string) => void;
}

/** A validated request, with the services for its route. */
export interface OpenCall<Body = unknown, Query = unknown> extends ServerContext {
  readonly request: IncomingMessage;
  readonly requestId: string;
  readonly params: Readonly<Record<string, string>>;
  readonly id: string;
  readonly body: Body;
  /** The text of the body property named by the route's `raw`, or an empty string. */
  readonly raw: string;
  readonly query: Query;
  readonly headers: IncomingHttpHeaders;
}

/** An authenticated request. */
export interface AccountCall<Body = unknown, Query = unknown> extends OpenCall<Body, Query> {
  readonly caller: Caller;
}

/** A request for an organisation in which the caller has the required role. */
export interface OrganisationCall extends AccountCall {
  readonly organisation: Membership;
}

/** A request for a project in which the caller has the required role. */
export interface ProjectCall<Body = unknown, Query = unknown> extends AccountCall<Body, Query> {
  readonly project: ProjectRow;
  /** The planes of the shard that takes the project's new events. */
  readonly planes: ShardPlanes;
  /** `planes`, followed by those of shards with events from before a move, the newest first. */
  readonly history: readonly ShardPlanes[];
  /**
   * Runs `work` on read replicas of `history`, whose data is a few seconds old, or on `history`
   * itself. Only for lists, searches and metrics: what a caller has just written may be missing.
   */
  readonly read: <T>(work: (history: readonly ShardPlanes[]) => Promise<T>) => Promise<T>;
  /** The endpoint owner of the caller's portal link. Undefined for other callers. */
  readonly ownerId: string | undefined;
}

interface Calls {
  readonly open: OpenCall;
  readonly account: AccountCall;
  readonly organisation: OrganisationCall;
  readonly project: ProjectCall;
}

/** Every kind of call as one type. A route reads only the properties of its reach. */
export type AnyCall = ProjectCall<never, never> & OrganisationCall;

interface Options {
  readonly body?: TSchema;
  /** The body property whose text is preserved byte for byte. */
  readonly raw?: string;
  /** True if the route may work for seconds; see `longReads`. */
  readonly isLong?: true;
  /** The list in the body whose elements the route validates, so that it can answer each. */
  readonly each?: string;
  /** True if the body contains a message, whose size `ingest.max_message_bytes` limits. */
  readonly carriesMessage?: true;
  /**
   * True if the route creates events, which commit in groups. Many more of these requests may run
   * concurrently, and they count towards `limits.events_per_second`.
   */
  readonly isGrouped?: true;
  readonly query?: TObject;
  /** The schema of the response's `data`, or of a list's row. If omitted, `data` is null. */
  readonly data?: TSchema;
  /** The path of the created resource's collection, if it is not the route's path. */
  readonly createsIn?: string;
  readonly status?: 200 | 201;
  /** Other statuses that the route can return, with the same response schema. */
  readonly alsoStatus?: readonly number[];
  /** The name of the client's method, if not derived from the method and path. */
  readonly name?: string;
  /**
   * The lowest role that may call the route, by default `viewer` for reads and `member` for other
   * methods. `instance` admits process credentials and instance admins.
   */
  readonly role?: Role | 'instance';
  readonly needsPerson?: true;
  readonly portal?: Access['portal'];
  /** False if the route is not audited, such as one that changes events. */
  readonly isAudited?: false;
}

/**
 * The declaration of a route, from which mounting, validation, the OpenAPI document and the client
 * are derived.
 */
export interface Route extends Options {
  readonly method: Method;
  /**
   * The path below `/api/v1` or, for a route of an organisation or project, below
   * `/organisations/:organisation_id` or `/projects/:project_id`.
   */
  readonly path: string;
  readonly summary: string;
  /** The access required: none, any caller, or access to the path's organisation or project. */
  readonly reach: keyof Calls;
  readonly run: (call: AnyCall) => Promise<ApiAnswer>;
}

type Method = 'get' | 'post' | 'put' | 'delete';
/**
 * A method and a path, such as `GET /endpoints`. The path is omitted for the project or
 * organisation itself.
 */
type Name = `${Uppercase<Method>}${'' | ` /${string}`}`;
type CallOf<Reach extends keyof Calls, It extends Options> = Calls[Reach] & {
  readonly body: It extends { body: infer Body extends TSchema } ? Static<Body> : undefined;
  readonly query: It extends { query: infer Query extends TObject }
    ? Static<Query>
    : Record<never, never>;
};

/**
 * Returns the path of a route below `/api/v1`, with the prefix of its reach.
 * @param of the path to prefix, if not the route's own
 */
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

/** Returns the GET route of the resource that `route` creates. */
export function showOfCreated(route: Route, routes: readonly Route[]): Route | undefined {
  const collection = pathOf(route, route.createsIn);
  return routes.find(
    (it) => it.method === 'get' && /^(.*)\/:\w+$/.exec(pathOf(it))?.[1] === collection,
  );
}

/** Returns the name of the route's resource: the first part of its path, in camel case. */
export function resourceOf({ reach, path }: Pick<Route, 'reach' | 'path'>): string {
  return camel((path === '' ? pathOf({ reach, path }) : path).split('/')[1]!);
}

export function accessOf(route: Route): Access {
  const { method, role, needsPerson, portal } = route;
  return {
    role: role === 'instance' ? 'owner' : (role ?? (method === 'get' ? 'viewer' : 'member')),
    scope: `${resourceOf(route)}:${method === 'get' || role === 'viewer' ? 'read' : 'write'}`,
    ...(needsPerson && { needsPerson }),
    ...(portal && { portal }),
  };
}

const DONE = { get: '', post: ' created', put: ' updated', delete: ' deleted' } as const;

interface ItemOptions extends Options {
  /** The resource's name in errors and messages. */
  readonly thing: string;
  /** The response's message, by default the resource and the action, such as `source deleted`. */
  readonly message?: string;
}

interface ListOptions extends Pick<Options, 'role' | 'needsPerson' | 'portal' | 'name'> {
  readonly title: string;
  readonly data?: TSchema;
  /** True if pages may end before they are full, with `searched_to`. */
  readonly isSearched?: true;
}

/** Returns the functions that declare routes of one reach. */
function routesOf<Reach extends keyof Calls>(reach: Reach) {
  /** Declares a route from its method and path, such as `GET /endpoints`. */
  function route<const It extends Options>(
    name: Name,
    summary: string,
    options: It,
    run: (call: CallOf<Reach, It>) => Promise<ApiAnswer>,
  ): Route {
    const [method = '', path = ''] = name.split(' ');
    return {
      method: method.toLowerCase() as Method,
      path,
      summary,
      ...options,
      reach,
      run: run,
    };
  }

  /**
   * Declares a route for a single resource, whose id is the last parameter of the path. Throws
   * `not_found` if `work`, which finds or changes the resource, returns undefined or false.
   */
  function item<const It extends ItemOptions, Row>(
    name: Name,
    summary: string,
    { thing, message, ...options }: It,
    work: (call: CallOf<Reach, It>) => Promise<Row | undefined | false>,
    view: (row: Row, call: CallOf<Reach, It>) => unknown = () => null,
  ): Route {
    const declared: Route = route(name, summary, options as Options, async (given) => {
      const call = given as CallOf<Reach, It>;
      const row = found(await work(call), thing, Object.values(call.params).at(-1)!);
      return {
        message: message ?? thing + DONE[declared.method],
        data: await view(row, call),
      };
    });
    return declared;
  }

  /**
   * Declares a route that lists rows in pages. `title` is the response's message; `query` must
   * include `pageQuery`.
   */
  function list<Row, Query extends TObject<typeof pageQuery>>(
    path: string,
    summary: string,
    { query, title, data: row, isSearched, ...access }: { query: Query } & ListOptions,
    read: (call: CallOf<Reach, { query: Query }>, page: PageRequest) => Promise<PageResult<Row>>,
    view: (row: Row, call: CallOf<Reach, { query: Query }>) => unknown,
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

/** Declares routes that need no credentials. */
export const { route: openRoute } = routesOf('open');
/** Declare routes that need a caller but no project. */
export const { route: accountRoute, item: accountItem, list: accountList } = routesOf('account');
/** Declare routes below `/organisations/:organisation_id`. */
export const {
  route: organisationRoute,
  item: organisationItem,
  list: organisationList,
} = routesOf('organisation');
/** Declare routes below `/projects/:project_id`. */
export const { route: projectRoute, item: projectItem, list: listRoute } = routesOf('project');

/** Returns the row. Throws `not_found` if it is undefined or false. */
export function found<Row>(row: Row | undefined | false, thing: string, id: string): Row {
  if (row === undefined || row === false) throw new GatewayError('not_found', { thing, id });
  return row;
}

/** Returns the call without its body and query, for running another route with the same path. */
export function withoutInput(call: AnyCall): AnyCall {
  return { ...call, body: undefined as never, query: {} as never };
}

/** Returns the row with `id` renamed to `uid`, as in responses. */
export function withUid<Row extends { readonly id: string }>({
  id,
  ...row
}: Row): { uid: string } & Omit<Row, 'id'> {
  return { uid: id, ...row };
}
