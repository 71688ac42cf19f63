import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import { MASK } from '@gateway/core/logging';

/** How the management API is reached from outside. */
export interface Links {
  /** Before every path: `root_path` without a host, else `https://gateway.example.com` and `root_path`. */
  readonly base: string;
  /** Where a person finds this process; its address on this machine when it has no public name. */
  url(port: number): string;
}

/**
 * The public name with its scheme: the one that `host` begins with, else that of the process itself.
 *
 * @throws GatewayError `host_invalid`
 */
export function linksOf({ host, root_path: rootPath, server: { http } }: Config): Links {
  const scheme = http.ssl ? 'https' : 'http';
  const origin = host === undefined || host === '' ? undefined : originOf(host, scheme);
  return {
    base: (origin ?? '') + rootPath,
    url: (port) => (origin ?? `${scheme}://${ownName(http.bind)}:${port}`) + rootPath,
  };
}

function originOf(host: string, scheme: string): string {
  const refuse = (reason: string) =>
    new GatewayError('host_invalid', { host: host.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/i, `$1${MASK}@`), reason });
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(host) ? host : `${scheme}://${host}`;
  if (/\s/.test(host) || !URL.canParse(text)) throw refuse('it is no name of a host');
  const { protocol, username, password, pathname, search, hash, origin } = new URL(text);
  if (protocol !== 'http:' && protocol !== 'https:') throw refuse('links begin with http:// or https://');
  if (username || password) throw refuse('it holds credentials, which would stand in every link');
  if (pathname !== '/' || search || hash) throw refuse('it holds more than a name and a port; a path is given with root_path');
  return origin;
}

/** Every address of the machine has no name that one could follow. */
function ownName(bind: string): string {
  if (bind === '0.0.0.0' || bind === '::') return 'localhost';
  return bind.includes(':') ? `[${bind}]` : bind;
}
