import type { Pages } from './pages.js';

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
}

type Parameter = string | number | boolean;

export interface Call {
  readonly method: string;
  /** The path below `/api/v1`, with parameters in braces. */
  readonly path: string;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly query?:
    Readonly<Record<string, Parameter | readonly Parameter[] | undefined>> | undefined;
  readonly body?: unknown;
  /** True if sent with an `Idempotency-Key`, so that retries create only once. */
  readonly isCreatedOnce?: true;
  readonly options?: CallOptions | undefined;
}

export interface Transport {
  call<Data>(call: Call): Promise<Data>;
  list<Row>(call: Call): Pages<Row>;
}
