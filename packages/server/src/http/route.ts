import type { IncomingHttpHeaders } from 'node:http';
import type { Static, TObject, TSchema } from '@sinclair/typebox';
import type { ProjectRow } from '@gateway/store/config';
import type { Caller } from '../auth/authenticate.js';
import type { Answer } from './envelope.js';
import type { Parts } from './server-context.js';

/** A request that has passed authentication and validation. */
export interface AccountCall<Body = unknown, Query = unknown> {
  readonly parts: Parts;
  readonly caller: Caller;
  /** Parameters of the path. */
  readonly params: Readonly<Record<string, string>>;
  readonly body: Body;
  /** The text of the member that the declaration names in `raw`. */
  readonly raw: string;
  readonly query: Query;
  readonly headers: IncomingHttpHeaders;
}

/** A request about one project, which the caller may reach. */
export interface ProjectCall<Body = unknown, Query = unknown> extends AccountCall<Body, Query> {
  readonly project: ProjectRow;
}

interface Declaration {
  readonly method: 'get' | 'post' | 'put' | 'delete';
  /** Below `/api/v1`; of a project route below `/api/v1/projects/:project_id`. */
  readonly path: string;
  readonly summary: string;
  readonly body?: TSchema;
  /** Member of the body that is kept as its text, byte for byte. */
  readonly raw?: string;
  readonly query?: TObject;
  /** Path of the collection that the created thing is in, when it is not that of the route. */
  readonly createsIn?: string;
  /** Status of a good answer; 200 without it. */
  readonly status?: 200 | 201;
}

/** One route of the management API, as data: it is mounted, validated and documented from here. */
export type Route = Declaration &
  (
    | { readonly reach: 'account'; readonly run: (call: AccountCall) => Promise<Answer> }
    | { readonly reach: 'project'; readonly run: (call: ProjectCall) => Promise<Answer> }
  );

type BodyOf<It extends Declaration> = It extends { body: infer Body extends TSchema } ? Static<Body> : undefined;
type QueryOf<It extends Declaration> = It extends { query: infer Query extends TObject } ? Static<Query> : Record<never, never>;

/** A route that stands above projects. */
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
