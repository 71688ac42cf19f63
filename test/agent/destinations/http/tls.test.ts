// The TLS server name sent to an endpoint, and the sentences for TLS failures.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import http2 from 'node:http2';
import type { Server } from 'node:net';
import path from 'node:path';
import tls from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { wantOf } from '#agent/destinations/http/failure';
import { RequestSender, type RequestResult } from '#agent/destinations/http/sender';
import { authority, type Authority, type Issued } from '../../../support/authority.js';
import { loopback } from '../../../support/ports.js';

const secure = suite('agent/destinations/http/tls');

let ca: Authority;
let own: Issued;
let sender: RequestSender;
secure.before(() => {
  ca = authority();
  own = ca.issue('own', ['DNS:localhost']);
  sender = new RequestSender({
    allowedNetworks: ['127.0.0.0/8', '::1'],
    maxResponseBytes: 1_000,
    lookupsPerProject: 32,
    caFile: ca.file,
  });
});
secure.after(async () => {
  await sender.close();
  ca.close();
});

const read = (file: string) => fs.readFileSync(file, 'utf8');
const pair = ({ certificate, key }: Issued) => ({ cert: read(certificate), key: read(key) });

async function post(
  server: Server,
  { host = 'localhost', scheme = 'https' } = {},
): Promise<RequestResult> {
  server.on('tlsClientError', () => undefined);
  const url = `${scheme}://${host}:${await loopback(server)}/`;
  try {
    const request = {
      projectId: 'p',
      url,
      headers: [],
      body: Buffer.from('{}'),
      timeoutMs: 10_000,
    };
    return await new Promise<RequestResult>((resolve) => sender.send(request, resolve));
  } finally {
    server.close();
  }
}

secure('the name of the server has no dot at its end, and an address is no name', async () => {
  const named: unknown[] = [];
  const server = () =>
    tls.createServer(pair(own), (socket) => {
      named.push(socket.servername);
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'));
    });
  assert.is((await post(server(), { host: 'localhost.' })).status, 200);
  assert.is((await post(server())).status, 200);
  assert.match(
    (await post(server(), { host: '127.0.0.1' })).failure?.message ?? '',
    'its certificate is for another host',
  );
  assert.equal(named.slice(0, 2), ['localhost', 'localhost']);
  assert.not.ok(named[2]);
});

/** Issues a certificate through an intermediate one, with both in one file on request. */
function behindIntermediate(): Issued & { readonly chain: string } {
  const folder = path.dirname(ca.file);
  const openssl = (...args: string[]) =>
    execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const days = ['-days', '30', '-CAcreateserial'];
  fs.writeFileSync(path.join(folder, 'middle.ext'), 'basicConstraints=critical,CA:TRUE\n');
  fs.writeFileSync(path.join(folder, 'leaf.ext'), 'subjectAltName=DNS:localhost\n');
  for (const [name, by] of [
    ['middle', 'ca'],
    ['leaf', 'middle'],
  ] as const) {
    openssl(
      'req',
      ...made,
      '-subj',
      `/CN=${name}`,
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.csr`,
    );
    const signing = ['-CA', `${by}.pem`, '-CAkey', `${by}.key`, '-extfile', `${name}.ext`];
    openssl('x509', '-req', '-in', `${name}.csr`, ...signing, ...days, '-out', `${name}.pem`);
  }
  const file = (name: string) => path.join(folder, name);
  return {
    certificate: file('leaf.pem'),
    key: file('leaf.key'),
    chain: read(file('leaf.pem')) + read(file('middle.pem')),
  };
}

secure('each mistake of a certificate has its sentence', async () => {
  const { chain, ...leaf } = behindIntermediate();
  const unknown = authority();
  const sentences: Readonly<
    Record<string, readonly [options: tls.TlsOptions, sentence: RegExp | null]>
  > = {
    'an intermediate certificate that is sent': [{ ...pair(leaf), cert: chain }, null],
    'one that is not sent': [
      pair(leaf),
      /it does not send the intermediate certificate that signed it\.$/,
    ],
    expired: [
      pair(ca.issue('old', ['DNS:localhost'], { expired: true })),
      /: its certificate has expired\.$/,
    ],
    'another name': [
      pair(ca.issue('other', ['DNS:other.test'])),
      /: its certificate is for another host\.$/,
    ],
    'self-signed': [
      { cert: read(unknown.file), key: read(path.join(path.dirname(unknown.file), 'ca.key')) },
      /: its certificate is self-signed\.$/,
    ],
    'an unknown authority in the chain': [
      { ...pair(unknown.issue('strange', ['DNS:localhost'])), ca: read(unknown.file) },
      /: its certificate is signed by an unknown authority/,
    ],
    'an old version of TLS': [
      { ...pair(own), minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' },
      /: no common protocol version or cipher\.$/,
    ],
    'HTTP/2 alone': [
      {
        ...pair(own),
        ALPNProtocols: ['h2'],
      },
      /: it does not offer HTTP\/1\.1 in TLS \(ALPN\); it may speak HTTP\/2 only\.$/,
    ],
  };
  for (const [name, [options, sentence]] of Object.entries(sentences)) {
    const server = tls.createServer(options, (socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'));
    });
    const { status, failure } = await post(server);
    assert.equal(
      [status, failure?.class],
      sentence ? [null, 'tls'] : [200, undefined],
      `${name}: ${failure?.message}`,
    );
    if (sentence) assert.match(failure?.message ?? '', sentence, name);
  }
  unknown.close();
});

secure('real servers of HTTP/2 and of TLS, called the wrong way, are named', async () => {
  const sentence = async (...args: Parameters<typeof post>) => {
    const { failure, remark } = await post(...args);
    return failure?.message ?? remark ?? '';
  };
  assert.match(
    await sentence(http2.createServer(), { scheme: 'http' }),
    'it speaks HTTP/2 only, and endpoints are called with HTTP/1.1',
  );
  assert.match(await sentence(http2.createSecureServer(pair(own))), /HTTP\/2/);
  assert.match(
    await sentence(tls.createServer(pair(own)), { scheme: 'http' }),
    /closed the connection without an answer\.$/,
  );
  // OpenSSL closes the connection without an alert, so only the port is a hint.
  const [plain, other] = ['http://localhost:8443/', 'http://localhost:8080/'].map((url) =>
    wantOf(new URL(url), false),
  );
  assert.equal(
    [plain, other],
    ['speak TLS, so that its URL has to begin with https://', undefined],
  );
  assert.match(await sentence(http2.createServer()), /: it does not speak TLS there\.$/);
});

secure.run();
