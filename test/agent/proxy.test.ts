import fs from 'node:fs';
import https from 'node:https';
import net from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Sender, type Answer, type SenderOptions } from '#agent/request/sender';
import { isGatewayError } from '#core/errors/errors';
import { migratedDatabase } from '../store/migrated.js';
import { authority, type Authority } from '../support/authority.js';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { httpProxy, type HttpProxy } from '../support/http-proxy.js';
import { freePort, loopback } from '../support/ports.js';
import { within } from '../support/until.js';
import { runAgent } from './running.js';

const proxy = suite('agent/proxy');

let trusted: Authority;
let plain: Endpoint;
let secure: { readonly port: number; close(): Promise<void> };

proxy.before(async () => {
  trusted = authority();
  const { certificate, key } = trusted.issue('hooks', ['DNS:localhost', 'DNS:hooks.example.com', 'IP:127.0.0.1']);
  const server = https.createServer({ cert: fs.readFileSync(certificate), key: fs.readFileSync(key) }, (request, response) => {
    request.resume().on('end', () => response.end(`over TLS to ${request.headers.host}`));
  });
  secure = {
    port: await loopback(server),
    close: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
  plain = await endpoint({ answer: { status: 200, body: 'plain' } });
});

proxy.after(async () => {
  await Promise.all([secure.close(), plain.close()]);
  trusted.close();
});

/** Sends POSTs one after another over one sender. */
async function post(options: Partial<SenderOptions>, ...urls: string[]): Promise<Answer[]> {
  const sender = new Sender({ allowedNetworks: ['127.0.0.0/8'], maxResponseBytes: 1000, caFile: trusted.file, ...options });
  const answers: Answer[] = [];
  try {
    for (const url of urls) {
      const sent = new Promise<Answer>((done) =>
        sender.send({ url, headers: ['content-type', 'application/json'], body: Buffer.from('{"a":1}'), timeoutMs: 10_000 }, done),
      );
      answers.push(await within(sent, 15_000, `an answer of ${url}`));
      // A connection is free again a moment after its answer.
      await setImmediate();
    }
    return answers;
  } finally {
    await sender.close();
  }
}

async function through(options: Parameters<typeof httpProxy>[0], test: (it: HttpProxy) => Promise<void>): Promise<void> {
  const it = await httpProxy(options);
  try {
    await test(it);
  } finally {
    await it.close();
  }
}

const shown = ({ status, body, failure }: Answer) => ({ status, body, failure });

proxy('https goes through a tunnel that is kept for the next request', () =>
  through({}, async (it) => {
    const url = `https://localhost:${secure.port}/hooks`;
    const answers = await post({ proxy: it.url }, url, url, url);
    const body = `over TLS to localhost:${secure.port}`;
    assert.equal(
      answers.map(shown),
      Array.from({ length: 3 }, () => ({ status: 200, body, failure: null })),
    );
    assert.equal(it.asked, [`CONNECT localhost:${secure.port}`]);
    assert.is(it.connections, 1);
  }),
);

proxy('http is asked for by its whole URL, over a connection that is kept', () =>
  through({}, async (it) => {
    const url = `http://localhost:${plain.port}/hooks?a=1`;
    const answers = await post({ proxy: it.url }, url, url);
    assert.equal(
      answers.map(({ status, body }) => [status, body]),
      [
        [200, 'plain'],
        [200, 'plain'],
      ],
    );
    assert.equal(it.asked, [`POST ${url}`, `POST ${url}`]);
    assert.is(it.headers.host, `localhost:${plain.port}`);
    assert.is(it.connections, 1);
  }),
);

proxy('user and password of the URL are the login at the proxy, and nobody else sees them', () =>
  through({ login: 'ada:p@ss wörd' }, async (it) => {
    const answers = await post({ proxy: it.url }, `http://localhost:${plain.port}/`, `https://localhost:${secure.port}/`);
    assert.equal(
      answers.map(({ status }) => status),
      [200, 200],
    );
  }),
);

proxy('a login that is wrong or missing fails with the class proxy, for http and https', () =>
  through({ login: 'ada:right' }, async (it) => {
    for (const url of [`http://ada:wrong@127.0.0.1:${it.port}`, `http://127.0.0.1:${it.port}`]) {
      const message = `The proxy 127.0.0.1:${it.port} requires a login (407). Set its user and password in delivery.proxy.`;
      for (const answer of await post({ proxy: url }, `http://localhost:${plain.port}/`, `https://localhost:${secure.port}/`)) {
        assert.equal(shown(answer), { status: answer.status, body: answer.body, failure: { class: 'proxy', message } });
      }
    }
  }),
);

proxy('a proxy that is away, or refuses, or cannot reach the endpoint, is told apart', async () => {
  const port = await freePort();
  for (const url of [`http://localhost:${plain.port}/`, `https://localhost:${secure.port}/`]) {
    const [answer] = await post({ proxy: `http://ada:hunter2@127.0.0.1:${port}` }, url);
    assert.equal(answer!.failure, { class: 'proxy', message: `The proxy 127.0.0.1:${port} cannot be reached: nothing listens there.` });
  }
  const target = `localhost:${secure.port}`;
  for (const [refuses, text] of [
    [403, '403 Forbidden when asked for a connection to <target>; its rules do not allow it.'],
    [502, '502 Bad Gateway when asked for a connection to <target>; it could not reach the host.'],
    [405, '405 Method Not Allowed when asked for a connection to <target>.'],
  ] as const) {
    await through({ refuses }, async (it) => {
      const [answer] = await post({ proxy: it.url }, `https://${target}/`);
      const message = `The proxy 127.0.0.1:${it.port} answered ${text.replace('<target>', target)}`;
      assert.equal(answer!.failure, { class: 'proxy', message });
    });
  }
});

proxy('an address that may not be reached is refused before the proxy is asked', () =>
  through({}, async (it) => {
    for (const url of [
      `http://127.0.0.1:${plain.port}/`,
      `https://127.0.0.1:${secure.port}/`,
      `http://localhost:${plain.port}/`,
      `https://localhost:${secure.port}/`,
      'http://[::1]/',
      'https://169.254.169.254/',
    ]) {
      const [answer] = await post({ proxy: it.url, allowedNetworks: [] }, url);
      assert.is(answer!.failure?.class, 'refused_address', url);
    }
    assert.equal(it.asked, []);
    assert.is(it.connections, 0);
  }),
);

proxy('a name that only the proxy knows is left to it', () =>
  through({ resolves: { 'hooks.example.invalid': '127.0.0.1' } }, async (it) => {
    const [answer] = await post({ proxy: it.url }, `http://hooks.example.invalid:${plain.port}/`);
    assert.is(answer!.status, 200);
    assert.equal(it.asked, [`POST http://hooks.example.invalid:${plain.port}/`]);
  }),
);

proxy('a password of the proxy with a percent sign that is not encoded is taken as it stands', () =>
  through({ login: 'ops:100%' }, async (it) => {
    const [answer] = await post({ proxy: `http://ops:100%@127.0.0.1:${it.port}` }, `http://localhost:${plain.port}/`);
    assert.is(answer!.status, 200);
  }),
);

proxy('a tunnel that is waited for ends with the sender', async () => {
  const silent = net.createServer();
  const port = await loopback(silent);
  const asked = new Promise<net.Socket>((resolve) => silent.once('connection', resolve));
  const sender = new Sender({ allowedNetworks: ['127.0.0.0/8'], maxResponseBytes: 1, proxy: `http://127.0.0.1:${port}` });
  const answer = new Promise<Answer>((done) =>
    sender.send({ url: 'https://localhost/', headers: [], body: Buffer.from(''), timeoutMs: 60_000 }, done),
  );
  const socket = await within(asked, 10_000, 'the proxy to be asked');
  try {
    const closed = new Promise((resolve) => socket.resume().once('close', resolve));
    await sender.close();
    await within(closed, 2_500, 'the connection to the proxy to end, which by itself it does after 5 s');
    assert.ok((await within(answer, 10_000, 'an answer')).failure);
  } finally {
    socket.destroy();
    silent.close();
  }
});

proxy('the certificate of an endpoint is verified behind the proxy as well', () =>
  through({}, async (it) => {
    const [unknown] = await post({ proxy: it.url, caFile: undefined }, `https://localhost:${secure.port}/`);
    assert.is(unknown!.failure?.class, 'tls');
  }),
);

proxy('delivery.ca_file: its authorities are believed beside the usual ones, with and without a proxy', async () => {
  const url = `https://localhost:${secure.port}/`;
  assert.is((await post({ caFile: undefined }, url))[0]!.failure?.class, 'tls');
  assert.is((await post({}, url))[0]!.status, 200);
});

proxy('delivery.ca_file: a file that cannot be used is told at once', () => {
  for (const [caFile, reason] of [
    ['/none.pem', 'there is no such file'],
    [trusted.file.replace('ca.pem', 'ca.key'), 'it holds no PEM certificate'],
  ] as const) {
    try {
      new Sender({ allowedNetworks: [], maxResponseBytes: 1, caFile });
      assert.unreachable();
    } catch (error) {
      assert.ok(isGatewayError(error, 'tls_file'), String(error));
      assert.match(error.message, reason);
      assert.match(error.fix, 'delivery.ca_file');
    }
  }
});

proxy('an agent sends its deliveries through delivery.proxy', () =>
  through({}, async (it) => {
    const db = await migratedDatabase();
    const running = await runAgent({
      db,
      settings: { delivery: { allowed_networks: ['127.0.0.0/8'], proxy: it.url, ca_file: trusted.file } },
    });
    try {
      const url = `https://localhost:${secure.port}/`;
      const answer = await within(
        new Promise<Answer>((done) => running.wiring.sender.send({ url, headers: [], body: Buffer.from('{}'), timeoutMs: 10_000 }, done)),
        15_000,
        'the answer',
      );
      assert.is(answer.status, 200);
      assert.equal(it.asked, [`CONNECT localhost:${secure.port}`]);
    } finally {
      await running.close();
      await db.close();
    }
  }),
);

proxy.run();
