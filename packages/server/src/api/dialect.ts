import type { TSchema } from '@sinclair/typebox';
import type { Context, Middleware } from 'koa';
import { importExtra, missingExtra } from '@gateway/core/process';
import type { ApiAnswer } from '../http/response.js';

/** The words of a client for a route. */
export interface Dialect {
  query(query: Readonly<Record<string, string | string[] | undefined>>): Record<string, unknown>;
  /** Changes the body in place. Returns the names of the removed fields. */
  body(body: unknown): string[];
  answer(answer: ApiAnswer): ApiAnswer;
}

/** The part of a route that decides its dialect. */
export interface SpokenRoute {
  readonly method: string;
  readonly path: string;
  readonly body?: TSchema;
  readonly data?: TSchema;
  readonly status?: number;
}

/** The exports of `@gateway/convoy`. */
export interface ConvoyPackage {
  /**
   * The same routes below `/convoy/api/v1` with Convoy's names, such as groups for projects, and
   * status 400 for an invalid request.
   */
  speakConvoy(rootPath: string): Middleware;
  /** Undefined for a request to another path. */
  dialectOf(ctx: Context, route: SpokenRoute): Dialect | undefined;
}

export const OUR_OWN: Dialect = {
  query: (query) => ({ ...query }),
  body: () => [],
  answer: (answer) => answer,
};

/** Undefined if the package is not installed. */
export async function openConvoy(): Promise<ConvoyPackage | undefined> {
  return missingConvoy() ? undefined : importExtra('@gateway/convoy', '/convoy');
}

export function missingConvoy() {
  return missingExtra('@gateway/convoy', '/convoy');
}
