import { request, type Dispatcher } from 'undici';
import type { Config } from '@gateway/core/config';
import { networkReason } from '@gateway/core/errors';
import {
  addressGuard,
  checkHost,
  dispatcherOf,
  guardedConnector,
  LookupError,
  LookupsBusyError,
  Names,
  ProxyError,
  RefusedAddressError,
  withAuthorities,
} from '@gateway/core/http';

const CONNECT_MS = 5_000;
const ANSWER_MAX = 1024 * 1024;
const LOOKUPS = 4;
/** https://fetch.spec.whatwg.org/#null-body-status */
const BODILESS = [204, 205, 304];

/**
 * The provider is unreachable or its response is too large. The gateway writes the message, not the
 * provider.
 */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

export interface ProviderFetch {
  /** Does not follow redirects. Rejects with `UnreachableError`. */
  fetch(
    url: string,
    options: {
      method: string;
      headers: Record<string, string>;
      body?: unknown;
      signal?: AbortSignal | undefined;
    },
  ): Promise<Response>;
  close(): Promise<void>;
}

/**
 * Uses the process's proxy. The provider's document chooses the hosts, so each is checked against
 * `oidc.allowed_networks` on connection.
 */
export function providerFetch({
  delivery,
  oidc,
}: Pick<Config, 'delivery' | 'oidc'>): ProviderFetch {
  const mayReach = addressGuard(oidc.allowed_networks);
  const names = new Names(LOOKUPS);
  const find = (name: string) => names.addresses(name);
  const secureContext =
    delivery.ca_file === undefined ? undefined : withAuthorities(delivery.ca_file);
  const dispatcher = dispatcherOf({
    proxy: delivery.proxy,
    noProxy: delivery.no_proxy,
    secureContext,
    connectTimeoutMs: CONNECT_MS,
    direct: guardedConnector(mayReach, find, {
      connectTimeoutMs: CONNECT_MS,
      secureContext,
      setting: 'oidc.allowed_networks',
    }),
    check: (host) => checkHost(host, mayReach, find, 'oidc.allowed_networks'),
  });
  return {
    async fetch(url, { method, headers, body, signal }) {
      try {
        const {
          statusCode,
          body: stream,
          headers: answered,
        } = await request(url, {
          dispatcher: dispatcher as Dispatcher,
          method: method,
          headers,
          body:
            typeof body === 'string' || body instanceof URLSearchParams ? body.toString() : null,
          signal: signal ?? null,
        });
        const bytes = await boundedBytes(stream);
        const fields = Object.entries(answered).flatMap(([name, value]) =>
          [value ?? []].flat().map((one): [string, string] => [name, one]),
        );
        return new Response(BODILESS.includes(statusCode) ? null : bytes, {
          status: statusCode,
          headers: fields,
        });
      } catch (error) {
        throw new UnreachableError(`${new URL(url).host}: ${reasonOf(error)}`, { cause: error });
      }
    },
    close: () => dispatcher.destroy(),
  };
}

async function boundedBytes(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Throwing from the loop also aborts the response.
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > ANSWER_MAX) throw new UnreachableError(`its response exceeds ${ANSWER_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const OWN = [UnreachableError, RefusedAddressError, LookupError, LookupsBusyError, ProxyError];

function reasonOf(error: unknown): string {
  const { name, code, message } = error as NodeJS.ErrnoException;
  if (OWN.some((it) => error instanceof it)) return message;
  if (name === 'TimeoutError' || code === 'UND_ERR_CONNECT_TIMEOUT') return 'no answer in time';
  return networkReason(error) ?? `the request failed (${code ?? name})`;
}
