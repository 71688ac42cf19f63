import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import type { SecureContext } from 'node:tls';
import { watchedConnector } from '@gateway/core/http';
import { buildConnector } from 'undici';

/** Networks that deliveries may not reach unless allowed: https://www.iana.org/assignments/iana-ipv4-special-registry and iana-ipv6-special-registry */
const REFUSED_NETWORKS = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // The unspecified address, loopback, and IPv4 addresses in the first form that IPv6 had for them.
  '::/96',
  '::ffff:0:0:0/96',
  '64:ff9b::/104',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
];

/** The address of a host, or those its name resolves to, are in a network that deliveries may not reach. */
export class RefusedAddressError extends Error {
  constructor(host: string, addresses: readonly string[]) {
    super(
      `${host}${addresses.includes(host) ? '' : ` resolves to ${addresses.join(', ')}, which`} is in a private or reserved network. An operator can allow the network with delivery.allowed_networks.`,
    );
    this.name = 'RefusedAddressError';
  }
}

/** Decides which addresses deliveries may reach; `allowedNetworks` override the table above. @throws Error if one is no CIDR block */
export function addressGuard(allowedNetworks: readonly string[]): (address: string) => boolean {
  const refused = blockList(REFUSED_NETWORKS);
  const allowed = blockList(allowedNetworks);
  return (address) => {
    const plain = embeddedIpv4(address) ?? address;
    const family = isIP(plain) === 6 ? 'ipv6' : 'ipv4';
    return allowed.check(plain, family) || !refused.check(plain, family);
  };
}

function blockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [, address = '', prefix] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(network) ?? [];
    const version = isIP(address);
    const longest = version === 6 ? 128 : 32;
    const length = Number(prefix ?? longest);
    if (version === 0 || length > longest) {
      throw new Error(`"${network}" is not a network in CIDR form, like 10.0.0.0/8 or fd00::/8.`);
    }
    list.addSubnet(address, length, version === 6 ? 'ipv6' : 'ipv4');
  }
  return list;
}

/** The IPv4 address inside an IPv4-mapped (::ffff:0:0/96) or NAT64 (64:ff9b::/96) address: that is where the packets go. */
function embeddedIpv4(address: string): string | undefined {
  if (isIP(address) !== 6) return undefined;
  const canonical = new URL(`http://[${address.replace(/%.*$/, '')}]`).hostname.slice(1, -1);
  const match = /^(?:::ffff:|64:ff9b::)([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical);
  if (!match) return undefined;
  const value = (parseInt(match[1] as string, 16) << 16) | parseInt(match[2] as string, 16);
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.');
}

/** A connector for undici that checks the address when it connects, and connects to exactly that address, so that DNS cannot change it in between. */
export function guardedConnector(
  mayReach: (address: string) => boolean,
  connectTimeoutMs: number,
  secureContext?: SecureContext,
): buildConnector.connector {
  const look = sharedLookup();
  const lookup: LookupFunction = (hostname, options, callback) => {
    look(hostname, options, (error, addresses) => {
      if (error) return callback(error, '');
      const reachable = addresses.filter(({ address }) => mayReach(address));
      const first = reachable[0];
      const refused = addresses.map(({ address }) => address);
      if (!first) callback(new RefusedAddressError(hostname, refused), '');
      else if (options.all) callback(null, reachable);
      else callback(null, first.address, first.family);
    });
  };
  const connect = watchedConnector(
    buildConnector({ timeout: connectTimeoutMs, lookup, keepAlive: true, ...(secureContext ? { secureContext } : {}) }),
  );
  return (options, callback) => {
    const host = options.hostname.replace(/^\[|\]$/g, '');
    if (isIP(host) !== 0 && !mayReach(host)) {
      callback(new RefusedAddressError(host, [host]), null);
      return;
    }
    connect(options, callback);
  };
}

type Found = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

/** Shares concurrent lookups of a name: each holds one of the few threads of the process, so a name server that never answers would block all others. */
function sharedLookup(): (hostname: string, options: LookupOptions, found: Found) => void {
  const underWay = new Map<string, Found[]>();
  return (hostname, options, found) => {
    const key = `${hostname} ${options.family ?? 0} ${options.hints ?? 0}`;
    const asking = underWay.get(key);
    if (asking) {
      asking.push(found);
      return;
    }
    const all = [found];
    underWay.set(key, all);
    dnsLookup(hostname, { ...options, all: true }, (error, addresses) => {
      underWay.delete(key);
      for (const one of all) one(error, addresses);
    });
  };
}

/** Checks a host behind a proxy, which may choose any of its addresses. A name that this machine cannot resolve is left to the rules of the proxy. */
export async function checkHost(host: string, mayReach: (address: string) => boolean): Promise<void> {
  const addresses = isIP(host) === 0 ? (await lookup(host, { all: true }).catch(() => [])).map(({ address }) => address) : [host];
  if (!addresses.every(mayReach)) throw new RefusedAddressError(host, addresses);
}
