import type { IncomingHttpHeaders } from 'node:http';
import type { Static, TObject, TSchema } from '@sinclair/typebox';
import type { Config } from '@gateway/core/config';
import type { Sealer } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import type { ProjectRow } from '@gateway/store/config';
import type { Kv } from '@gateway/store/kv';
import type { Page, PageRequest } from '@gateway/store/pagination';
import type { Database } from '@gateway/store/postgres';
import type { UsageCounter } from '@gateway/store/usage';
import type { Caller } from '../auth/authenticate.js';
import type { ProcessCredentials } from '../auth/process-credentials.js';
import type { RecordCache } from '../auth/record-cache.js';
import type { RequestLimit } from '../auth/request-limit.js';
import { pageRequest, pageView, type pageQuery } from '../http/list-query.js';
import type { Links } from '../http/links.js';
import type { Answer } from '../http/response.js';

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
  readonly limit: RequestLimit;
  readonly usage: UsageCounter;
  /** Undefined when billing is not enabled. */
  readonly billing: { readonly problem: string | null } | undefined;
}

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

interface Options {
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
export type Route = Options & {
  readonly method: Method;
  /** Below `/api/v1`, or for project routes below `/api/v1/projects/:project_id`. */
  readonly path: string;
  readonly summary: string;
} & (
    | { readonly reach: 'account'; readonly run: (call: AccountCall) => Promise<Answer> }
    | { readonly reach: 'project'; readonly run: (call: ProjectCall) => Promise<Answer> }
  );

type Method = 'get' | 'post' | 'put' | 'delete';
/** `GET /endpoints`; without a path that of the project itself. */
type Name = `${Uppercase<Method>}${'' | ` /${string}`}`;
type BodyOf<It extends Options> = It extends { body: infer Body extends TSchema } ? Static<Body> : undefined;
type QueryOf<It extends Options> = It extends { query: infer Query extends TObject } ? Static<Query> : Record<never, never>;

/** A route outside any project. */
export function accountRoute<const It extends Options>(
  name: Name,
  summary: string,
  options: It,
  run: (call: AccountCall<BodyOf<It>, QueryOf<It>>) => Promise<Answer>,
): Route {
  return { ...parse(name), summary, ...options, reach: 'account', run: run as (call: AccountCall) => Promise<Answer> };
}

/** A route of one project. */
export function projectRoute<const It extends Options>(
  name: Name,
  summary: string,
  options: It,
  run: (call: ProjectCall<BodyOf<It>, QueryOf<It>>) => Promise<Answer>,
): Route {
  return { ...parse(name), summary, ...options, reach: 'project', run: run as (call: ProjectCall) => Promise<Answer> };
}

function parse(name: Name): { method: Method; path: string } {
  const [method = '', path = ''] = name.split(' ');
  return { method: method.toLowerCase() as Method, path };
}

/** A project route that lists resources by page. `title` is its message; `query` includes `pageQuery`. */
export function listRoute<Row, Query extends TObject<typeof pageQuery>>(
  path: string,
  summary: string,
  { query, title }: { query: Query; title: string },
  list: (call: ProjectCall<undefined, Static<Query>>, page: PageRequest) => Promise<Page<Row>>,
  view: (row: Row, call: ProjectCall) => unknown,
): Route {
  const run = async (call: ProjectCall) => {
    const request = pageRequest(call.query as Static<TObject<typeof pageQuery>>);
    const page = await list(call as ProjectCall<undefined, Static<Query>>, request);
    return { message: title, data: pageView(page, request, (row) => view(row, call)) };
  };
  return { method: 'get', path, summary, query, reach: 'project', run };
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
