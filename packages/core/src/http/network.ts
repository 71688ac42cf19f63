import { BlockList, isIP } from 'node:net';

/**
 * The IPv4 address, unwrapped if IPv4-mapped, or the /64 network of an IPv6 address, because one
 * client usually controls all of it.
 */
export function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=[\d.]+$)/i, '').replace(/%.*$/, '');
  if (isIP(plain) !== 6) return plain;
  const [head = '', tail = ''] = new URL(`http://[${plain}]`).hostname.slice(1, -1).split('::');
  const [left, right] = [head, tail].map((it) => (it === '' ? [] : it.split(':'))) as [
    string[],
    string[],
  ];
  const zeros = Array<string>(8 - left.length - right.length).fill('0');
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`;
}

/**
 * Whether an address is in one of the networks, given as CIDRs or addresses.
 *
 * @throws Error for another text
 */
export function withinNetworks(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4');
  for (const network of networks) {
    const [, address = '', length] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(network) ?? [];
    const longest = isIP(address) === 6 ? 128 : 32;
    const bits = Number(length ?? longest);
    if (isIP(address) === 0 || bits > longest)
      throw new Error(`"${network}" is not a network in CIDR form, like 10.0.0.0/8 or fd00::/8.`);
    list.addSubnet(address, bits, familyOf(address));
  }
  return (address) => isIP(address) !== 0 && list.check(address, familyOf(address));
}
