import type { buildConnector } from 'undici';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { connectToAny } from '#core/http/connect-any';
import { LookupError } from '#core/http/names';
import { shortageOf } from '#core/http/shortage';

const shortage = suite('core/http/shortage');

const failed = (code: string, address = '127.0.0.1') =>
  Object.assign(new Error(`connect ${code}`), { code, address });

shortage('each shortage of this machine is named with its fix, also as a cause', () => {
  for (const [code, fix] of [
    ['EMFILE', 'LimitNOFILE'],
    ['ENFILE', 'fs.file-max'],
    ['EADDRNOTAVAIL', 'net.ipv4.ip_local_port_range'],
    ['ENOBUFS', 'memory'],
    ['ENOMEM', 'memory'],
  ] as const) {
    assert.match(shortageOf(failed(code)) ?? '', fix);
    assert.match(shortageOf(new Error('proxy', { cause: failed(code) })) ?? '', fix);
  }
});

shortage('the other side is at fault for what it refuses', () => {
  for (const error of [failed('ECONNREFUSED'), failed('ENETUNREACH'), 'EMFILE', undefined])
    assert.is(shortageOf(error), undefined);
  assert.is(shortageOf(new LookupError('a.test', 'ENOTFOUND')), undefined);
});

shortage(
  'a name whose last address found no port is short, whatever the others answered',
  async () => {
    const tried = async (codes: Readonly<Record<string, string>>) => {
      const connect: buildConnector.connector = ({ hostname }, callback) =>
        callback(failed(codes[hostname]!, hostname), null);
      const addresses = Object.keys(codes).map((address) => ({
        address,
        family: address.includes(':') ? 6 : 4,
      }));
      return new Promise<NodeJS.ErrnoException | null>((resolve) =>
        connectToAny(
          connect,
          { hostname: 'a.test', protocol: 'http:', port: '80' },
          addresses,
          (...[error]) => resolve(error),
        ),
      );
    };
    const refused = { '127.0.0.8': 'EADDRNOTAVAIL', '127.0.0.9': 'ECONNREFUSED' };
    assert.is((await tried(refused))?.code, 'EADDRNOTAVAIL');
    const unrouted = { 'fd00::1': 'ENETUNREACH', '127.0.0.1': 'EADDRNOTAVAIL' };
    assert.is((await tried(unrouted))?.code, 'EADDRNOTAVAIL');
    const gone = { 'fd00::1': 'ENETUNREACH', '127.0.0.1': 'ECONNREFUSED' };
    assert.is((await tried(gone))?.code, 'ECONNREFUSED');
  },
);

shortage.run();
