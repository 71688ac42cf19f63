import { isIP } from 'node:net';
import { withinNetworks } from './network.js';

/**
 * As in curl and Go: a host or `.domain`, which include subdomains, an address or network, each
 * with an optional port, or `*`.
 */
export function proxyExceptions(exceptions: readonly string[]): (url: URL) => boolean {
  const rules = exceptions.flatMap((text) => ruleOf(text.trim().toLowerCase()) ?? []);
  return ({ protocol, hostname, port }) => {
    const host = hostname.replace(/^\[|\]$|\.$/g, '');
    const used = port || (protocol === 'https:' ? '443' : '80');
    return rules.some((rule) => (rule.port ?? used) === used && rule.includes(host));
  };
}

function ruleOf(
  text: string,
): { readonly port: string | undefined; includes(host: string): boolean } | undefined {
  const [, bracketed, plain = '', port] = /^(?:\[(.*)\]|(.*?))(?::(\d+))?$/.exec(text) ?? [];
  // More than one colon is an IPv6 address.
  const [host, ownPort] =
    isIP(text.split('/')[0]!) === 6 ? [text, undefined] : [bracketed ?? plain, port];
  if (host === '') return undefined;
  if (host === '*') return { port: ownPort, includes: () => true };
  if (isIP(host.split('/')[0]!) === 0) {
    const name = host.replace(/^\*?\./, '');
    return { port: ownPort, includes: (it) => it === name || it.endsWith(`.${name}`) };
  }
  try {
    return { port: ownPort, includes: withinNetworks([host]) };
  } catch {
    return undefined;
  }
}
