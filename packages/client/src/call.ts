import type { Pages } from './pages.js';

/** Of one call. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
}

type Parameter = string | number | boolean;

/** A request, as the generated methods make it. */
export interface Call {
  readonly method: string;
  /** Below `/api/v1`, with parameters in braces. */
  readonly path: string;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, Parameter | readonly Parameter[] | undefined>> | undefined;
  readonly body?: unknown;
  /** With an `Idempotency-Key` it creates once, however often it is sent. */
  readonly isCreatedOnce?: true;
  readonly options?: CallOptions | undefined;
}

export interface Caller {
  call<Data>(call: Call): Promise<Data>;
  list<Row>(call: Call): Pages<Row>;
}
