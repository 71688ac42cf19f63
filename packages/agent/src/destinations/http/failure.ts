import { clip } from '@gateway/core/json';
import { networkReason, tlsReason } from '@gateway/core/errors';
import { LookupError, ProxyError, RefusedAddressError } from '@gateway/core/http';
import type { FailureClass } from '../../model/destination.js';

export interface RequestFailure {
  readonly class: FailureClass;
  readonly message: string;
}

interface FailurePlace {
  readonly place: string;
  readonly status: number | null;
  /**
   * The likely requirement of an endpoint that closed the connection without a response, phrased to
   * follow "it may".
   */
  readonly mayWant?: string | undefined;
}

export function failureOf(error: Error, at: FailurePlace): RequestFailure {
  const failureClass = failureClassOf(error);
  return { class: failureClass, message: sentence(failureClass, error, at) };
}

export function timeoutFailure(timeoutMs: number, status: number | null): RequestFailure {
  const message =
    status === null
      ? `No complete response within ${timeoutMs} ms.`
      : `The endpoint began to answer ${status}, and its response was not complete within ${timeoutMs} ms.`;
  return { class: 'timeout', message };
}

/**
 * Returns the likely requirement of an endpoint that closes the connection without a response, if
 * any.
 */
export function wantOf({ protocol, port }: URL, hasCertificate: boolean): string | undefined {
  // In TLS 1.3, a client without the required certificate only sees the connection close.
  if (protocol === 'https:') return hasCertificate ? undefined : 'require a client certificate';
  // OpenSSL sends no alert to a client that speaks plain HTTP, which only sees the connection
  // close.
  return port.endsWith('443') ? 'speak TLS, so that its URL has to begin with https://' : undefined;
}

/** Matches the 400 responses of nginx, Apache and Go to a plain HTTP request on a TLS port. */
const WANTS_TLS =
  /plain HTTP request was sent to HTTPS port|plain HTTP to an SSL-enabled|HTTP request to an HTTPS server/;

export function tlsRemark(
  { protocol, host }: URL,
  status: number | null,
  body: string,
): string | undefined {
  if (status !== 400 || protocol !== 'http:' || !WANTS_TLS.test(body)) return undefined;
  return `${host} speaks TLS, so its URL has to begin with https://.`;
}

/** Names the proxy of a plain HTTP request, whose own answers of these statuses look the same. */
export function proxyRemark(status: number | null, proxy: string | undefined): string | undefined {
  return proxy !== undefined && status !== null && status >= 502 && status <= 504
    ? `This is the answer of the proxy ${proxy} if it could not reach the endpoint.`
    : undefined;
}

/**
 * Returns the failure for a redirect, or null for any other response. Redirects are not followed,
 * because an endpoint must not choose where else a signed request is sent.
 */
export function redirectFailure(
  status: number | null,
  headers: Readonly<Record<string, string>>,
): RequestFailure | null {
  const { location } = headers;
  if (status === null || status < 300 || status > 399 || !location) return null;
  const shown = clip(location, 201);
  return {
    class: 'status',
    message: `The endpoint answered ${status}, a redirect to ${shown}. Redirects are not followed: if it has moved, change its URL.`,
  };
}

function sentence(
  failureClass: FailureClass,
  error: Error,
  { place, status, mayWant }: FailurePlace,
): string {
  const { code } = error as NodeJS.ErrnoException;
  const told = error.message || code || error.name;
  switch (failureClass) {
    case 'connect':
      return `No connection to ${place}: ${code === 'UND_ERR_CONNECT_TIMEOUT' ? 'no answer in time' : (networkReason(error) ?? told)}.`;
    case 'tls':
      return `No secure connection to ${place}: ${tlsReason(error) ?? told}.`;
    case 'reset':
      return status === null
        ? `${place} closed the connection without an answer${mayWant ? `; it may ${mayWant}` : ''}.`
        : `${place} closed the connection in the middle of its answer.`;
    case 'protocol':
      return `What ${place} answers cannot be read: ${told}.`;
    case 'unsendable':
      return `The request cannot be sent: ${told}.`;
    case 'dns':
    case 'timeout':
    case 'status':
    case 'proxy':
    case 'refused_address':
    case 'function':
      return told;
  }
}

const CONNECT_CODES =
  /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EADDRNOTAVAIL|EACCES|UND_ERR_CONNECT_TIMEOUT)$/;
const TLS_CODES = /^EPROTO$|^ERR_TLS|^ERR_SSL|CERT|SIGNATURE|ISSUER/;

function failureClassOf(error: Error): FailureClass {
  if (error instanceof RefusedAddressError) return 'refused_address';
  if (error instanceof ProxyError) return 'proxy';
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (error instanceof LookupError) return 'dns';
  if (CONNECT_CODES.test(code)) return 'connect';
  if (code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET') return 'reset';
  if (code.startsWith('HPE_')) return 'protocol';
  if (code.startsWith('UND_ERR_INVALID') || error instanceof TypeError) return 'unsendable';
  if (TLS_CODES.test(code)) return 'tls';
  return error instanceof AggregateError ? 'connect' : 'protocol';
}
