import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { withinNetworks } from '@gateway/core/http';

export type AddressReader = (request: IncomingMessage) => string;

/**
 * The first address that is not a trusted proxy: the socket's, then those in `X-Forwarded-For` from
 * right to left. Addresses further left can be forged.
 */
function clientAddress(
  { headers, socket }: IncomingMessage,
  isProxy: (address: string) => boolean,
): string {
  let client = plain(socket.remoteAddress);
  const forwarded = headers['x-forwarded-for'];
  if (forwarded === undefined) return client;
  for (const hop of String(forwarded).split(',').reverse()) {
    const address = plain(hop);
    if (isIP(address) === 0 || !isProxy(client)) break;
    client = address;
  }
  return client;
}

/** @param proxies CIDRs of trusted proxies */
export function addressReader(proxies: readonly string[]): AddressReader {
  const isProxy = withinNetworks(proxies);
  return (request) => clientAddress(request, isProxy);
}

/** Drops port, brackets and zone. An IPv4-mapped IPv6 address becomes IPv4. */
export function plain(hop = ''): string {
  return hop
    .trim()
    .replace(/^\[(.*)\](:\d+)?$|^([\d.]+):\d+$/, '$1$3')
    .replace(/%.*$/, '')
    .replace(/^::ffff:(?=[\d.]+$)/i, '');
}
