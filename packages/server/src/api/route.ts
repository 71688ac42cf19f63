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
import type { Page, PageRequest } from '@gateway/store/pagination';
import type { Database } from '@gateway/store/postgres';
import type { Access } from '../auth/access.js';
import type { Caller } from '../auth/caller.js';
import type { AddressReader } from '../auth/client-address.js';
import type { KeyUse } from '../auth/key-use.js';
import type { LoginGuard } from '../auth/login-guard.js';
import type { OidcProvider } from '../auth/oidc/provider.js';
import type { ProcessCredentials } from '../auth/process-credentials.js';
import type { RecordCache } from '../auth/record-cache.js';
import type { RequestLimit } from '../auth/request-limit.js';
import type { SessionCookies } from '../auth/session-cookie.js';
import type { TakeShare } from './shares.js';
import { pageOf, pageRequest, pageView, type pageQuery } from '../http/list-query.js';
import type { AskDatabase } from '../health/database-outage.js';
import type { HealthProbe } from '../health/healthz.js';
import type { ReceiveBody } from '../http/body-room.js';
import type { Links } from '../http/links.js';
import type { Answer } from '../http/response.js';
import { camel } from './resources.js';

/** What routes use, made once by `startServer`. */
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
  readonly ask: AskDatabase;
  readonly limit: RequestLimit;
  /** Of portal links, in the place of `limit`. */
  readonly portalLimit: RequestLimit;
  readonly receive: ReceiveBody;
  readonly takeShare: TakeShare;
  /** Of the connection tests of a project. */
  readonly tests: RequestLimit;
  /** Of the function tests of a project. */
  readonly functionTests: RequestLimit;
  readonly functions: Functions;
  readonly logins: LoginGuard;
  readonly sessions: SessionCookies;
  /** Undefined when people sign in by password only. */
  readonly oidc: OidcProvider | undefined;
  readonly keyUse: KeyUse;
  readonly addressOf: AddressReader;
  readonly events: EventCreator;
  /** By which events are routed in their commit. */
  readonly configCache: ConfigCache;
  /** Throws `too_many_events` for a project that has sent more than `limits.events_per_second`. */
  readonly requirePace: (projectId: string) => void;
  /** What projects reject that reject unknown event types. */
  readonly catalogue: EventTypeCatalogue;
  /** Tells agents of events that are pending. */
  readonly signalPending: (events: readonly Pick<EventRef, 'projectId' | 'id'>[]) => void;
  readonly probeHealth: HealthProbe;
  readonly billing: { readonly problem: string | null } | undefined;
}

/** A request that passed validation, of anyone. */
export interface OpenCall<Body = unknown, Query = unknown> extends ServerContext {
  readonly request: IncomingMessage;
  readonly requestId: string;
  readonly params: Readonly<Record<string, string>>;
  readonly id: string;
  readonly body: Body;
  /** Text of the member that the declaration names in `raw`. */
  readonly raw: string;
  readonly query: Query;
  readonly headers: IncomingHttpHeaders;
}

/** A request that passed authentication too. */
export interface AccountCall<Body = unknown, Query = unknown> extends OpenCall<Body, Query> {
  readonly caller: Caller;
}

/** A request for an organisation in which the caller has the role that the route asks for. */
export interface OrganisationCall<Body = unknown, Query = unknown> extends AccountCall<Body, Query> {
  /** With the role of the caller. */
  readonly organisation: Membership;
}

/** A request for a project that the caller may reach, with the role that the route asks for. */
export interface ProjectCall<Body = unknown, Query = unknown> extends AccountCall<Body, Query> {
  readonly project: ProjectRow;
  /** Of a portal link: the only owner whose endpoints it may see. */
  readonly ownerId: string | undefined;
}

interface Options {
  readonly body?: TSchema;
  /** Member of the body that is kept as text, byte for byte. */
  readonly raw?: string;
  /** The body holds a message: it may be as large as `ingest.max_message_bytes` asks for. */
  readonly carriesMessage?: true;
  /** It creates events, which commit together with others: many more of a project may run at a time, and they count for `limits.events_per_second`. */
  readonly isGrouped?: true;
  readonly query?: TObject;
  /** What `data` of the answer is; null when it is left out. In a list route, one row. */
  readonly data?: TSchema;
  /** Path of the collection that gets the created resource, when it is not that of the route. */
  readonly createsIn?: string;
  readonly status?: 200 | 201;
  /** What the route answers with otherwise, in the same shape. */
  readonly alsoStatus?: readonly number[];
  /** What the client calls it, when that is not plain from method and path. */
  readonly name?: string;
  /**
   * The least role of the caller; `viewer` for reads and `member` for others when it is left out. `instance`: a credential of the process, or a user
   * who is an instance admin.
   */
  readonly role?: Role | 'instance';
  readonly needsPerson?: true;
  readonly portal?: Access['portal'];
  /** False for what changes no configuration, such as events: it is not written to the audit log. */
  readonly isAudited?: false;
}

/** A route of the management API as data: it is mounted, validated and documented from here, and the client is made from it. */
export interface Route extends Options {
  readonly method: Method;
  /** Below `/api/v1`; of an organisation below `/organisations/:organisation_id` there, of a project below `/projects/:project_id`. */
  readonly path: string;
  readonly summary: string;
  /** Whom it needs: nobody, a caller, or one who reaches the organisation or project of the path, which the call then has. */
  readonly reach: 'open' | 'account' | 'organisation' | 'project';
  readonly run: (call: ProjectCall) => Promise<Answer>;
}

type Method = 'get' | 'post' | 'put' | 'delete';
/** `GET /endpoints`; without a path that of the project itself. */
type Name = `${Uppercase<Method>}${'' | ` /${string}`}`;
type BodyOf<It extends Options> = It extends { body: infer Body extends TSchema } ? Static<Body> : undefined;
type QueryOf<It extends Options> = It extends { query: infer Query extends TObject } ? Static<Query> : Record<never, never>;
type Run<Call> = (call: Call) => Promise<Answer>;

/** Path of a route below `/api/v1`, or of another path with its reach. */
export function pathOf({ reach, path }: Pick<Route, 'reach' | 'path'>, of = path): string {
  return { open: '', account: '', organisation: '/organisations/:organisation_id', project: '/projects/:project_id' }[reach] + of;
}

/** The route that shows what a route creates; undefined when there is none. */
export function showOfCreated(route: Route, routes: readonly Route[]): Route | undefined {
  const collection = pathOf(route, route.createsIn);
  return routes.find((it) => it.method === 'get' && /^(.*)\/:\w+$/.exec(pathOf(it))?.[1] === collection);
}

/** The resource of a route: the first part of its path, in camel case. */
export function resourceOf({ reach, path }: Pick<Route, 'reach' | 'path'>): string {
  return camel((path === '' ? pathOf({ reach, path }) : path).split('/')[1]!);
}

/** What a route asks of its caller. */
export function accessOf(route: Route): Access {
  const { method, role, needsPerson, portal } = route;
  return {
    role: role === 'instance' ? 'owner' : (role ?? (method === 'get' ? 'viewer' : 'member')),
    scope: `${resourceOf(route)}:${method === 'get' || role === 'viewer' ? 'read' : 'write'}`,
    ...(needsPerson && { needsPerson }),
    ...(portal && { portal }),
  };
}

/** Declares a route below `/api/v1` that needs no credentials. */
export function openRoute<const It extends Options>(
  name: Name,
  summary: string,
  options: It,
  run: Run<OpenCall<BodyOf<It>, QueryOf<It>>>,
): Route {
  return { ...projectRoute(name, summary, options, run), reach: 'open' };
}

/** Declares a route below `/api/v1/organisations/:organisation_id`. */
export function organisationRoute<const It extends Options>(
  name: Name,
  summary: string,
  options: It,
  run: Run<OrganisationCall<BodyOf<It>, QueryOf<It>>>,
): Route {
  return { ...projectRoute(name, summary, options, run as unknown as Run<ProjectCall<BodyOf<It>, QueryOf<It>>>), reach: 'organisation' };
}

/** Declares a route below `/api/v1` that needs a caller but no project. */
export function accountRoute<const It extends Options>(
  name: Name,
  summary: string,
  options: It,
  run: Run<AccountCall<BodyOf<It>, QueryOf<It>>>,
): Route {
  return { ...projectRoute(name, summary, options, run), reach: 'account' };
}

/** Declares a route below `/api/v1/projects/:project_id`; its call has the project, which the caller may reach. */
export function projectRoute<const It extends Options>(
  name: Name,
  summary: string,
  options: It,
  run: Run<ProjectCall<BodyOf<It>, QueryOf<It>>>,
): Route {
  const [method = '', path = ''] = name.split(' ');
  return { method: method.toLowerCase() as Method, path, summary, ...options, reach: 'project', run: run as Run<ProjectCall> };
}

/** A project route that lists resources by page. `title` is its message; `query` includes `pageQuery`. */
export function listRoute<Row, Query extends TObject<typeof pageQuery>>(
  path: string,
  summary: string,
  {
    query,
    title,
    data: row,
    ...access
  }: { query: Query; title: string; data?: TSchema } & Pick<Options, 'role' | 'needsPerson' | 'portal'>,
  list: (call: ProjectCall<undefined, Static<Query>>, page: PageRequest) => Promise<Page<Row>>,
  view: (row: Row, call: ProjectCall) => unknown,
): Route {
  const run = async (call: ProjectCall) => {
    const request = pageRequest(call.query as Static<TObject<typeof pageQuery>>);
    const page = await list(call as ProjectCall<undefined, Static<Query>>, request);
    return { message: title, data: pageView(page, request, (row) => view(row, call)) };
  };
  return { method: 'get', path, summary, query, ...(row && { data: pageOf(row) }), ...access, reach: 'project', run };
}

/** Returns the row; throws `not_found` when there is none, or nothing was deleted. */
export function found<Row>(row: Row | undefined | false, thing: string, id: string): Row {
  if (row === undefined || row === false) throw new GatewayError('not_found', { thing, id });
  return row;
}

/** Renames `id` to `uid`, its name in responses. */
export function withUid<Row extends { readonly id: string }>({ id, ...row }: Row): { uid: string } & Omit<Row, 'id'> {
  return { uid: id, ...row };
}
