import { GatewayError } from '../errors/errors.js';
import type { Config } from './settings.js';

export interface Links {
  /** The origin, if `host` is set, then `root_path`. */
  readonly base: string;
  /** By the settings. */
  readonly isHttps: boolean;
  /** With the public name, or else the address of a listener. */
  url(port: number): string;
  /** With the public name, or else the address that the client has used. */
  ofRequest(request: ClientRequest): string;
}

/** Gives the address used by the client. */
interface ClientRequest {
  readonly headers: { readonly host?: string | undefined };
  readonly socket: { readonly localPort?: number | undefined };
}

/** The scheme is that of `host` or, if it has none, of the listener. Throws `host_invalid`. */
export function linksOf({
  host,
  root_path: rootPath,
  server: { http },
}: Pick<Config, 'host' | 'root_path' | 'server'>): Links {
  const scheme = http.ssl ? 'https' : 'http';
  const origin = host === undefined || host === '' ? undefined : originOf(host, scheme);
  return {
    base: (origin ?? '') + rootPath,
    isHttps: origin === undefined ? http.ssl : origin.startsWith('https:'),
    url: (port) => (origin ?? `${scheme}://${localName(http.bind)}:${port}`) + rootPath,
    ofRequest({ headers, socket }) {
      const name = headers.host || `${localName(http.bind)}:${socket.localPort ?? http.port}`;
      return (origin ?? `${scheme}://${name}`) + rootPath;
    },
  };
}

function originOf(host: string, scheme: string): string {
  const invalid = (reason: string) => new GatewayError('host_invalid', { host, reason });
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(host) ? host : `${scheme}://${host}`;
  if (/\s/.test(host) || !URL.canParse(text)) throw invalid('it is not a host name');
  const { protocol, pathname, search, hash, origin } = new URL(text);
  if (protocol !== 'http:' && protocol !== 'https:')
    throw invalid('its scheme is not http or https');
  if (pathname !== '/' || search || hash)
    throw invalid('it contains more than a name and a port; set a path with root_path');
  return origin;
}

function localName(bind: string): string {
  if (bind === '0.0.0.0' || bind === '::') return 'localhost';
  return bind.includes(':') ? `[${bind}]` : bind;
}
