import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Static, TObject, TSchema } from '@sinclair/typebox';
import type { Config } from '@gateway/core/config';
import type { Sealer } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import type { Functions } from '@gateway/ingest/once/functions';
import type { EventTypeCatalogue, ProjectRow, Role } from '@gateway/store/config';
import type { Membership } from '@gateway/store/people';
import type { EventCreator } from '@gateway/ingest/commit/event-creator';
import type { ConfigCache } from '@gateway/ingest/routing/config-cache';
import type { EventRef } from '@gateway/store/events';
import type { Kv } from '@gateway/store/kv';
import type { PageRequest, PageResult } from '@gateway/store/pagination';
import type { Database } from '@gateway/store/postgres';
import type { Access } from '../auth/access.js';
import type { AddressReader } from '../auth/client-address.js';
import type { KeyUse } from '../auth/key-use.js';
import type { LoginGuard } from '../auth/login-guard.js';
import type { OidcProvider } from '../auth/oidc/provider.js';
import type { Caller, ProcessCredentials } from '../auth/process-credentials.js';
import type { RecordCache } from '../auth/record-cache.js';
import type { RequestLimit } from '../auth/request-limit.js';
import type { SessionCookies } from '../auth/session-cookie.js';
import type { TakeShare } from './shares.js';
import { pageOf, pageRequest, pageView, type pageQuery } from '../http/list-query.js';
import type { AskDatabase } from '../health/database-outage.js';
import type { HealthProbe } from '../health/healthz.js';
import type { ReceiveBody } from '../http/body-room.js';
import type { Links } from '../http/links.js';
import type { ApiAnswer } from '../http/response.js';
import { camel } from './resources.js';

/** Services of routes. */
export interface ServerContext {
  readonly config: Config;
  readonly database: Database;
  readonly kv: Kv;
  readonly plugins: ActivatedPlugins;
  readonly sealer: Sealer;
  readonly log: Log;
  readonly links: Links;
  readonly credentials: ProcessCredentials;
  readonly records: RecordCache;
  readonly tests: RequestLimit;
  readonly functionTests: RequestLimit;
  readonly functions: Functions;
  readonly logins: LoginGuard;
  readonly sessions: SessionCookies;
  /** Undefined if users sign in only by password. */
  readonly oidc: OidcProvider | undefined;
  readonly addressOf: AddressReader;
  readonly events: EventCreator;
  /** Event types, for projects that reject unknown ones. */
  readonly catalogue: EventTypeCatalogue;
  readonly signalPending: (events: readonly Pick<EventRef, 'projectId' | 'id'>[]) => void;
  readonly probeHealth: HealthProbe;
}

/** Also services that admit a request before its route runs. */
export interface AppContext extends ServerContext {
  readonly ask: AskDatabase;
  readonly limit: RequestLimit;
  readonly portalLimit: RequestLimit;
  readonly receive: ReceiveBody;
  readonly takeShare: TakeShare;
  readonly keyUse: KeyUse;
  readonly configCache: ConfigCache;
  /** Throws `too_many_events` above `limits.events_per_second`. */
  readonly requirePace: (projectId: string) => void;
}

/** A validated request. */
export interface OpenCall<Body = unknown, Query = unknown> extends ServerContext {
  readonly request: IncomingMessage;
  readonly requestId: string;
  readonly params: Readonly<Record<string, string>>;
  readonly id: string;
  readonly body: Body;
  /** Text of the body member that the route names in `raw`. */
  readonly raw: string;
  readonly query: Query;
  readonly headers: IncomingHttpHeaders;
}

/** An authenticated request. */
export interface AccountCall<Body = unknown, Query = unknown> extends OpenCall<Body, Query> {
  readonly caller: Caller;
}

/** A request for an organisation, with the required role. */
export interface OrganisationCall extends AccountCall {
  readonly organisation: Membership;
}

/** A request for a project, with the required role. */
export interface ProjectCall<Body = unknown, Query = unknown> extends AccountCall<Body, Query> {
  readonly project: ProjectRow;
  /** The owner of a portal link, whose endpoints alone it sees. */
  readonly ownerId: string | undefined;
}

interface Calls {
  readonly open: OpenCall;
  readonly account: AccountCall;
  readonly organisation: OrganisationCall;
  readonly project: ProjectCall;
}

/** Every call as one type; a route reads only the members of its reach. */
export type AnyCall = ProjectCall<never, never> & OrganisationCall;

interface Options {
  readonly body?: TSchema;
  /** The body member kept as text, byte for byte. */
  readonly raw?: string;
  /** The body holds a message: its limit follows `ingest.max_message_bytes`. */
  readonly carriesMessage?: true;
  /**
   * Creates events, which commit in groups: many more run at a time, and they count towards
   * `limits.events_per_second`.
   */
  readonly isGrouped?: true;
  readonly query?: TObject;
  /** The answer's `data`, or a row of a list; null if omitted. */
  readonly data?: TSchema;
  /** The collection of the created resource, if not the route's path. */
  readonly createsIn?: string;
  readonly status?: 200 | 201;
  /** Further statuses with the same shape. */
  readonly alsoStatus?: readonly number[];
  /** The client method, if method and path do not imply it. */
  readonly name?: string;
  /**
   * The least role; by default `viewer` for reads, else `member`. `instance`: a process credential
   * or an instance admin.
   */
  readonly role?: Role | 'instance';
  readonly needsPerson?: true;
  readonly portal?: Access['portal'];
  /** False outside the configuration, as for events: the audit log skips them. */
  readonly isAudited?: false;
}

/** A route as data: mounting, validation, document and client derive from it. */
export interface Route extends Options {
  readonly method: Method;
  /**
   * The path below `/api/v1`, and by reach below `/organisations/:organisation_id` or
   * `/projects/:project_id`.
   */
  readonly path: string;
  readonly summary: string;
  /** Required access: none, any caller, or access to the organisation or project of the path. */
  readonly reach: keyof Calls;
  readonly run: (call: AnyCall) => Promise<ApiAnswer>;
}

type Method = 'get' | 'post' | 'put' | 'delete';
/** `GET /endpoints`; without a path, the project itself. */
type Name = `${Uppercase<Method>}${'' | ` /${string}`}`;
type CallOf<Reach extends keyof Calls, It extends Options> = Calls[Reach] & {
  readonly body: It extends { body: infer Body extends TSchema } ? Static<Body> : undefined;
  readonly query: It extends { query: infer Query extends TObject }
    ? Static<Query>
    : Record<never, never>;
};

/** Returns the path below `/api/v1` of a route, or of another path with its reach. */
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

/** Returns the route that shows the resource that `route` creates. */
export function showOfCreated(route: Route, routes: readonly Route[]): Route | undefined {
  const collection = pathOf(route, route.createsIn);
  return routes.find(
    (it) => it.method === 'get' && /^(.*)\/:\w+$/.exec(pathOf(it))?.[1] === collection,
  );
}

/** Returns the first part of the path in camel case. */
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

/** The names of one resource in answers. */
interface ItemOptions extends Options {
  /** Its name in errors. */
  readonly thing: string;
  /** The answer's message, if it is not `thing` with what the method did. */
  readonly message?: string;
}

interface ListOptions extends Pick<Options, 'role' | 'needsPerson' | 'portal' | 'name'> {
  readonly title: string;
  readonly data?: TSchema;
}

/** The kinds of routes of a reach. */
function routesOf<Reach extends keyof Calls>(reach: Reach) {
  /** Declares a route. */
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
   * Declares a route of one resource. `work` finds or changes it, and returns undefined or false if
   * there is none. The path's last parameter is its id.
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

  /** Declares a paginated list. `title` is its message; `query` includes `pageQuery`. */
  function list<Row, Query extends TObject<typeof pageQuery>>(
    path: string,
    summary: string,
    { query, title, data: row, ...access }: { query: Query } & ListOptions,
    read: (call: CallOf<Reach, { query: Query }>, page: PageRequest) => Promise<PageResult<Row>>,
    view: (row: Row, call: CallOf<Reach, { query: Query }>) => unknown,
  ): Route {
    const options = { query, ...(row && { data: pageOf(row) }), ...access };
    return route(`GET ${path}` as Name, summary, options, async (given) => {
      const call = given as CallOf<Reach, { query: Query }>;
      const request = pageRequest(call.query);
      const page = await read(call, request);
      return { message: title, data: pageView(page, request, (it) => view(it, call)) };
    });
  }

  return { route, item, list };
}

/** Routes that need no credentials. */
export const { route: openRoute } = routesOf('open');
/** Routes that need a caller but no project. */
export const { route: accountRoute, item: accountItem, list: accountList } = routesOf('account');
/** Routes below `/organisations/:organisation_id`. */
export const {
  route: organisationRoute,
  item: organisationItem,
  list: organisationList,
} = routesOf('organisation');
/** Routes below `/projects/:project_id`. */
export const { route: projectRoute, item: projectItem, list: listRoute } = routesOf('project');

/** Returns the row; throws `not_found` for undefined and false. */
export function found<Row>(row: Row | undefined | false, thing: string, id: string): Row {
  if (row === undefined || row === false) throw new GatewayError('not_found', { thing, id });
  return row;
}

/** Returns the call of another route with the same path: without body and query. */
export function withoutInput(call: AnyCall): AnyCall {
  return { ...call, body: undefined as never, query: {} as never };
}

/** Renames `id` to `uid`, its name in responses. */
export function withUid<Row extends { readonly id: string }>({
  id,
  ...row
}: Row): { uid: string } & Omit<Row, 'id'> {
  return { uid: id, ...row };
}
