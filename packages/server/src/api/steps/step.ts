import type { RouterContext } from '@koa/router';
import type { BodySender } from '../../http/body-room.js';
import type { ApiAnswer } from '../../http/response.js';
import type { auditor } from '../audit.js';
import type { ConvoyPackage, Dialect } from '../dialect.js';
import type { runOnce } from '../idempotency.js';
import type { AppContext } from '../context.js';
import type { AnyCall, Route } from '../route.js';
import type { methodsByPath } from '../routers.js';

/** A request with a body, and whose limits it counts towards. */
export interface HttpExchange {
  readonly ctx: RouterContext;
  readonly projectId: string;
  readonly sender: BodySender;
  /** Shares its concurrency among requests. */
  readonly owner: string;
  readonly bodyLimit: number;
  readonly createsEvents: boolean;
  bytes: Buffer;
  /** Frees what the request occupies: the buffer of its body, later its share. */
  release: () => void;
}

/** A request to a route. Steps fill in what later ones need. */
export interface RouteExchange extends Mutable<HttpExchange> {
  /** An id in the path that is none. */
  stray: string | undefined;
  dialect: Dialect;
  readonly call: Mutable<AnyCall>;
  ignored: readonly string[];
  answer: ApiAnswer;
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** Resolves to `ANSWERED` if it has responded, so that no other step may run. */
export type RequestStep<It> = (it: It) => unknown;

export const ANSWERED = Symbol('answered');

export interface ApiParts extends AppContext {
  readonly routes: readonly Route[];
  readonly methodsAt: ReturnType<typeof methodsByPath>;
  readonly convoy: ConvoyPackage | undefined;
  readonly audit: ReturnType<typeof auditor>;
  readonly once: ReturnType<typeof runOnce>;
}

/** Prepares a step of a route; undefined if the route does not need it. */
export type RouteStep = (route: Route, parts: ApiParts) => RequestStep<RouteExchange> | undefined;

export function stepsOf(
  steps: readonly RouteStep[],
  route: Route,
  parts: ApiParts,
): readonly RequestStep<RouteExchange>[] {
  return steps.flatMap((step) => step(route, parts) ?? []);
}

export async function runSteps<It extends Pick<HttpExchange, 'release'>>(
  steps: readonly RequestStep<It>[],
  it: It,
): Promise<void> {
  try {
    for (const step of steps) if ((await step(it)) === ANSWERED) return;
  } finally {
    it.release();
  }
}
