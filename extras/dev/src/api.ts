import { DevError } from './services/dev-error.js';

const REQUEST_MS = 20_000;

/** A client of the management API. Methods throw a DevError with the API's message and fix. */
export class Api {
  readonly url: string;
  readonly #key: string;

  /** @param url the base URL, such as `http://127.0.0.1:5005/api/v1` */
  constructor(url: string, key: string) {
    this.url = url;
    this.#key = key;
  }

  /** Sends a request and returns the `data` of the response. */
  async call<T>(method: 'GET' | 'POST' | 'PUT', path: string, body?: object): Promise<T> {
    const response = await fetch(this.url + path, {
      method,
      headers: {
        authorization: `Bearer ${this.#key}`,
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
      signal: AbortSignal.timeout(REQUEST_MS),
    });
    const {
      message,
      fix = 'read .gateway/dev.log',
      data,
    } = (await response.json()) as { message: string; fix?: string; data: T };
    if (!response.ok) throw Object.assign(new DevError(message, fix), { status: response.status });
    return data;
  }

  /** Returns the resource, or undefined without an id or after a 404. */
  async find<T>(path: string, id: string | undefined): Promise<T | undefined> {
    if (id === undefined) return undefined;
    return this.call<T>('GET', `${path}/${id}`).catch((error: { status?: number }) => {
      if (error.status === 404) return undefined;
      throw error;
    });
  }

  async list<T>(path: string): Promise<readonly T[]> {
    return (await this.call<{ content: readonly T[] }>('GET', path)).content;
  }
}

export interface EventView {
  readonly uid: string;
  readonly event_type: string;
  readonly status: 'pending' | 'processed' | 'failed';
  readonly outcome: string | null;
  readonly created_at: string;
}

export interface DeliveryView {
  readonly uid: string;
  readonly endpoint_id: string;
  readonly attempts: number;
  readonly created_at: string;
  readonly next_attempt_at: string | null;
  readonly event_metadata: { readonly event_type: string | null };
  readonly endpoint_metadata: {
    readonly name: string | null;
    readonly url: string | null;
    readonly status: string | null;
  };
}

export interface AttemptView {
  readonly number: number;
  readonly requested_at: string;
  readonly duration_ms: number;
  readonly http_status: number | null;
  readonly status: boolean;
  readonly error: string | null;
  readonly response_body: string | null;
}

export interface QuarantinedView {
  readonly uid: string;
  readonly code: string;
  readonly reason: string;
}
