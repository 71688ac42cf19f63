import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import path from 'node:path';
import tls from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveConfig } from '#core/config/config';
import { isGatewayError, type ErrorCode } from '#core/errors/errors';
import { createLog, silentLog } from '#core/logging/log';
import { startServer } from '@gateway/server';
import { readTlsPair, reloadCertificates, tlsFiles } from '#server/tls';
import { migratedDatabase } from '../store/migrated.js';
import { loopback } from '../support/ports.js';
import { certificates, type Certificates } from '../support/start/certificates.js';
import { tempFolder } from '../support/start/keep.js';
import { until } from '../support/until.js';
import { activated, configOf, refusal } from './api.js';

const tlsFilesSuite = suite('server/tls');

const folder = tempFolder('tls');
const one = certificates(path.join(folder, 'one'));
const two = certificates(path.join(folder, 'two'));
const inFolder = (name: string, text: string) => {
  fs.writeFileSync(path.join(folder, name), text);
  return path.join(folder, name);
};

const settings = (files: object) =>
  resolveConfig({ env: {}, file: { server: { http: files } } }).config.server.http;

function refused(files: object, code: ErrorCode): Error & { fix: string } {
  try {
    readTlsPair(tlsFiles(settings(files))!);
  } catch (error) {
    assert.ok(isGatewayError(error, code), String(error));
    return error;
  }
  throw new Error(`they were taken; expected ${code}`);
}

tlsFilesSuite(
  'a file that cannot be used is named with the reason, its flag and its setting',
  () => {
    const locked = path.join(folder, 'locked.key');
    execFileSync(
      'openssl',
      ['pkcs8', '-topk8', '-in', one.key, '-out', locked, '-passout', 'pass:hunter2'],
      { stdio: 'ignore' },
    );
    const empty = inFolder('empty.pem', '');
    const cases: [files: Partial<Record<'cert' | 'key', string>>, sentence: RegExp, fix: RegExp][] =
      [
        [
          { cert: '/no/such/cert.pem' },
          /certificate in \/no\/such\/cert\.pem cannot be used: there is no such file/,
          /--ssl-cert-file.*GATEWAY_SSL_CERT_FILE/,
        ],
        [{ cert: folder }, /it is a folder/, /--ssl-cert-file/],
        [{ cert: empty }, /certificate in .*empty\.pem/, /--ssl-cert-file/],
        [{ cert: one.key }, /no PEM certificate/, /--ssl-cert-file/],
        [
          { key: '/no/such/key.pem' },
          /key in \/no\/such\/key\.pem cannot be used: there is no such file/,
          /--ssl-key-file.*GATEWAY_SSL_KEY_FILE/,
        ],
        [{ key: empty }, /no PEM private key/, /--ssl-key-file/],
        [{ key: one.certificate }, /no PEM private key/, /--ssl-key-file/],
        [{ key: locked }, /locked with a passphrase/, /--ssl-key-file/],
        [{ key: two.key }, /not the key of the certificate/, /--ssl-key-file/],
      ];
    for (const [{ cert = one.certificate, key = one.key }, sentence, fix] of cases) {
      const error = refused({ ssl: true, ssl_cert_file: cert, ssl_key_file: key }, 'tls_file');
      assert.match(error.message, sentence);
      assert.match(error.fix, fix);
    }
  },
);

tlsFilesSuite('they are refused before Postgres is asked anything', async () => {
  const config = configOf(
    { url: 'postgres://nobody@127.0.0.1:1/none' },
    { server: { http: { port: 0, ssl: true } } },
  );
  await refusal(config, 'invalid_settings');
});

tlsFilesSuite(
  'the API is answered over TLS 1.2 or newer and not in clear text, and its URL says so',
  async () => {
    const db = await migratedDatabase();
    const file = {
      server: {
        http: {
          port: 0,
          bind: '127.0.0.1',
          ssl: true,
          ssl_cert_file: one.certificate,
          ssl_key_file: one.key,
        },
      },
    };
    const server = await startServer({
      config: configOf(db, file),
      plugins: await activated(),
      log: silentLog,
    });
    try {
      assert.is(server.url, `https://127.0.0.1:${server.port}`);
      const { status, protocol, hsts } = await healthz(server.port, one);
      assert.equal([status, hsts], [200, 'max-age=31536000']);
      assert.match(protocol, /^TLSv1\.[23]$/);
      const plain = await new Promise((resolve) =>
        http
          .get(`http://127.0.0.1:${server.port}/healthz`, (response) =>
            resolve(response.statusCode),
          )
          .on('error', () => resolve('cut')),
      );
      assert.is.not(plain, 200);
    } finally {
      await server.close();
      await db.close();
    }
  },
);

tlsFilesSuite(
  'a renewed certificate is used, and unusable files leave the one in use',
  async () => {
    const files = {
      certificate: inFolder('served.pem', fs.readFileSync(one.certificate, 'utf8')),
      key: inFolder('served.key', fs.readFileSync(one.key, 'utf8')),
    };
    const lines: string[] = [];
    const log = createLog({
      level: 'info',
      name: 'test',
      destination: { write: (line) => lines.push(line) },
    });
    const inUse = readTlsPair(files);
    const server = https.createServer({ ...inUse.options }, (_, response) => response.end());
    const port = await loopback(server);
    const stopReloading = reloadCertificates(server, { files, inUse, log, pollMs: 50 });
    try {
      assert.is(await fingerprint(port), fingerprintOf(one));
      fs.copyFileSync(two.certificate, files.certificate);
      await until('the mismatch to be told', () => lines.length > 0);
      assert.match(lines[0] ?? '', /Keeping the current TLS certificate: .*not the key/);
      assert.is(await fingerprint(port), fingerprintOf(one));
      fs.copyFileSync(two.key, files.key);
      await until(
        'the renewed certificate',
        async () => (await fingerprint(port)) === fingerprintOf(two),
      );
      assert.match(lines.at(-1) ?? '', 'Loaded the renewed TLS certificate.');
      assert.is(lines.length, 2, 'each is told once');
    } finally {
      stopReloading();
      await new Promise((resolve) => server.close(resolve));
    }
  },
);

function healthz(
  port: number,
  { ca }: Certificates,
): Promise<{ status: number | undefined; protocol: string; hsts: string | undefined }> {
  return new Promise((resolve, reject) => {
    https
      .get(
        { host: '127.0.0.1', port, path: '/healthz', ca: fs.readFileSync(ca), agent: false },
        (response) => {
          response.resume();
          const { statusCode: status, headers, socket } = response;
          resolve({
            status,
            protocol: (socket as tls.TLSSocket).getProtocol() ?? '',
            hsts: headers['strict-transport-security'],
          });
        },
      )
      .on('error', reject);
  });
}

function fingerprint(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = tls.connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

function fingerprintOf({ certificate }: Certificates): string {
  return new X509Certificate(fs.readFileSync(certificate)).fingerprint256;
}

tlsFilesSuite.run();
