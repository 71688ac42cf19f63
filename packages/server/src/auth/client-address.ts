import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';

/** The address of the client of a request, behind trusted proxies too. */
export type AddressReader = (request: IncomingMessage) => string;

/** The client of a request: read from the right, the first address of `X-Forwarded-For` that is no trusted proxy. What is left of it may be made up. */
function clientAddress({ headers, socket }: IncomingMessage, isProxy: (address: string) => boolean): string {
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

/** Reads the client of a request; `proxies` are the trusted ones, as CIDRs. */
export function addressReader(proxies: readonly string[]): AddressReader {
  const isProxy = within(proxies);
  return (request) => clientAddress(request, isProxy);
}

/** An address without port, brackets and zone, and an IPv4 address not in the form of IPv6. */
export function plain(hop = ''): string {
  return hop
    .trim()
    .replace(/^\[(.*)\](:\d+)?$|^([\d.]+):\d+$/, '$1$3')
    .replace(/%.*$/, '')
    .replace(/^::ffff:(?=[\d.]+$)/i, '');
}

/** Whether an address is in one of these networks. */
function within(networks: readonly string[]): (address: string) => boolean {
  const family = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4');
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', length] = network.split('/');
    list.addSubnet(address, Number(length), family(address));
  }
  return (address) => isIP(address) !== 0 && list.check(address, family(address));
}
