import dgram from 'node:dgram';
import dns from 'node:dns';
import { once } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import net, { isIPv6 } from 'node:net';

/**
 * A name's answer: addresses, an error, or none. `truncated` makes clients repeat the query over
 * TCP.
 */
export type Said =
  | readonly string[]
  | 'silence'
  | 'nxdomain'
  | 'servfail'
  | { readonly truncated: readonly string[] };

/** A name server on 127.0.0.1, over UDP and TCP. */
export interface NameServer {
  readonly address: string;
  /** Queried names with their family, in order: `a.test 4`. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

const CODES = { nxdomain: 3, servfail: 2 } as const;
/** https://www.iana.org/assignments/dns-parameters: A and AAAA. */
const FAMILIES: Readonly<Record<number, 4 | 6>> = { 1: 4, 28: 6 };

/** @param say returns the answer to each query */
export async function nameServer(say: (name: string, family: 4 | 6) => Said): Promise<NameServer> {
  const asked: string[] = [];
  const answer = (question: Buffer, isTcp: boolean) => {
    const { name, family, end } = read(question);
    asked.push(`${name} ${family}`);
    return message(question.subarray(0, end), family, say(name, family), isTcp);
  };
  const tcp = net.createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      const answered = answer(bytes.subarray(2), true);
      if (answered)
        socket.write(
          Buffer.concat([Buffer.from([answered.length >> 8, answered.length & 255]), answered]),
        );
    });
  });
  const udp = dgram.createSocket('udp4');
  await once(tcp.listen(0, '127.0.0.1'), 'listening');
  const { port } = tcp.address() as net.AddressInfo;
  udp.on('message', (bytes, from) => {
    const answered = answer(bytes, false);
    if (answered) udp.send(answered, from.port, from.address);
  });
  udp.bind(port, '127.0.0.1');
  await once(udp, 'listening');
  return {
    address: `127.0.0.1:${port}`,
    asked,
    close: async () => {
      await Promise.all([
        new Promise((closed) => tcp.close(closed)),
        new Promise<void>((closed) => udp.close(closed)),
      ]);
    },
  };
}

/** Runs a test while this process queries these servers instead of the machine's. */
export async function askingServers(
  addresses: readonly string[],
  test: () => Promise<void>,
): Promise<void> {
  const { Resolver } = dns;
  class Own extends Resolver {
    constructor(options?: dns.ResolverOptions) {
      super(options);
      this.setServers(addresses);
    }
  }
  const use = (resolver: typeof Resolver) => {
    Object.assign(dns, { Resolver: resolver });
    syncBuiltinESMExports();
  };
  use(Own);
  try {
    await test();
  } finally {
    use(Resolver);
  }
}

function read(question: Buffer): { name: string; family: 4 | 6; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length; (length = question[at]!) > 0; at += length + 1)
    labels.push(question.toString('latin1', at + 1, at + 1 + length));
  return { name: labels.join('.'), family: FAMILIES[question.readUInt16BE(at + 1)]!, end: at + 5 };
}

/** https://www.rfc-editor.org/rfc/rfc1035#section-4 */
function message(question: Buffer, family: 4 | 6, said: Said, isTcp: boolean): Buffer | undefined {
  if (said === 'silence') return undefined;
  const isTruncated = typeof said === 'object' && 'truncated' in said && !isTcp;
  const all = typeof said === 'string' ? [] : 'truncated' in said ? said.truncated : said;
  const records = isTruncated
    ? []
    : all.filter((address) => isIPv6(address) === (family === 6)).map(record);
  const head = Buffer.from(question);
  head[2] = 0x81 | (isTruncated ? 2 : 0);
  head[3] = 0x80 | (typeof said === 'string' ? CODES[said] : 0);
  head.writeUInt16BE(records.length, 6);
  head.fill(0, 8, 12);
  return Buffer.concat([head, ...records]);
}

function record(address: string): Buffer {
  const bytes = isIPv6(address) ? expanded(address) : address.split('.').map(Number);
  return Buffer.from([
    0xc0,
    12,
    0,
    isIPv6(address) ? 28 : 1,
    0,
    1,
    0,
    0,
    0,
    60,
    0,
    bytes.length,
    ...bytes,
  ]);
}

function expanded(address: string): number[] {
  const [before = [], after = []] = address
    .split('::')
    .map((part) => (part ? part.split(':') : []));
  const groups = [
    ...before,
    ...Array<string>(8 - before.length - after.length).fill('0'),
    ...after,
  ];
  return groups.flatMap((group) => [parseInt(group, 16) >> 8, parseInt(group, 16) & 255]);
}
