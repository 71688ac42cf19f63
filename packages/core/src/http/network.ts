import { isIP } from 'node:net';

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
