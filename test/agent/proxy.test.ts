import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  RequestSender,
  type RequestResult,
  type RequestSenderOptions,
} from '#agent/destinations/http/sender';
import type { InFlightDelivery } from '#agent/model/delivery';
import { isGatewayError } from '#core/errors/errors';
import { newId } from '#core/events/ids';
import { proxyProcess } from '#core/http/process-proxy';
import { proxyExceptions } from '#core/http/proxy-exceptions';
import { migratedDatabase } from '../store/migrated.js';
import { authority, type Authority } from '../support/authority.js';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { httpProxy, type HttpProxy } from '../support/http-proxy.js';
import { askingServers, nameServer } from '../support/name-server.js';
import { freePort, loopback } from '../support/ports.js';
import { within } from '../support/until.js';
import { cachedEndpoint, makeSecret, secretRecord } from './records.js';
import { runAgent } from './running.js';

const proxy = suite('agent/proxy');

let trusted: Authority;
let plain: Endpoint;
let secure: { readonly port: number; close(): Promise<void> };

proxy.before(async () => {
  trusted = authority();
  const { certificate, key } = trusted.issue('hooks', [
    'DNS:localhost',
    'DNS:hooks.example.com',
    'IP:127.0.0.1',
  ]);
  const server = https.createServer(
    { cert: fs.readFileSync(certificate), key: fs.readFileSync(key) },
    (request, response) => {
      request.resume().on('end', () => response.end(`over TLS to ${request.headers.host}`));
    },
  );
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

const OPTIONS: RequestSenderOptions = {
  allowedNetworks: ['127.0.0.0/8'],
  maxResponseBytes: 1,
  lookupsPerProject: 32,
};
const REQUEST = {
  projectId: 'p',
  headers: ['content-type', 'application/json'],
  body: Buffer.from('{"a":1}'),
  timeoutMs: 10_000,
};

/** Sends sequential POSTs with one sender. */
async function post(
  options: Partial<RequestSenderOptions>,
  ...urls: string[]
): Promise<RequestResult[]> {
  const sender = new RequestSender({
    ...OPTIONS,
    maxResponseBytes: 1000,
    caFile: trusted.file,
    ...options,
  });
  const answers: RequestResult[] = [];
  try {
    for (const url of urls) {
      const sent = new Promise<RequestResult>((done) => sender.send({ ...REQUEST, url }, done));
      answers.push(await within(sent, 15_000, `an answer of ${url}`));
      // A connection is free again a moment after its response.
      await setImmediate();
    }
    return answers;
  } finally {
    await sender.close();
  }
}

async function through(
  options: Parameters<typeof httpProxy>[0],
  test: (it: HttpProxy) => Promise<void>,
): Promise<void> {
  const it = await httpProxy(options);
  try {
    await test(it);
  } finally {
    await it.close();
  }
}

const shown = ({ status, body, failure }: RequestResult) => ({ status, body, failure });

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
    const answers = await post(
      { proxy: it.url },
      `http://localhost:${plain.port}/`,
      `https://localhost:${secure.port}/`,
    );
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
      for (const answer of await post(
        { proxy: url },
        `http://localhost:${plain.port}/`,
        `https://localhost:${secure.port}/`,
      )) {
        assert.equal(shown(answer), {
          status: answer.status,
          body: answer.body,
          failure: { class: 'proxy', message },
        });
      }
    }
  }),
);

proxy('a proxy that is away, or refuses, or cannot reach the endpoint, is told apart', async () => {
  const port = await freePort();
  for (const url of [`http://localhost:${plain.port}/`, `https://localhost:${secure.port}/`]) {
    const [answer] = await post({ proxy: `http://ada:hunter2@127.0.0.1:${port}` }, url);
    assert.equal(answer!.failure, {
      class: 'proxy',
      message: `The proxy 127.0.0.1:${port} cannot be reached: nothing listens there.`,
    });
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

proxy('exceptions are reached without the proxy, as by curl', async () => {
  const yes: [exception: string, url: string][] = [
    ['*', 'https://any.example'],
    ['example.com', 'https://example.com/a'],
    ['Example.com', 'https://a.b.EXAMPLE.com.'],
    ['.example.com', 'https://a.example.com'],
    ['*.example.com', 'https://a.example.com'],
    ['minio:9000', 'http://minio:9000'],
    ['a.test:443', 'https://a.test'],
    ['127.0.0.1', 'http://127.0.0.1:8080'],
    ['10.0.0.0/8', 'http://10.1.2.3'],
    ['::1', 'http://[::1]:80'],
    ['[::1]:8080', 'http://[::1]:8080'],
    ['fd00::/8', 'http://[fd12::1]'],
  ];
  const no: typeof yes = [
    ['', 'https://example.com'],
    ['example.com', 'https://notexample.com'],
    ['example.com', 'https://example.com.evil.test'],
    ['minio:9000', 'http://minio:9001'],
    ['10.0.0.0/8', 'http://11.0.0.1'],
    ['10.0.0.0/8', 'http://10.example'],
    ['10.0.0.0/x', 'http://11.0.0.1'],
  ];
  for (const [exception, url] of yes)
    assert.ok(proxyExceptions(['other.test', ` ${exception} `])(new URL(url)), exception);
  for (const [exception, url] of no)
    assert.not(proxyExceptions([exception])(new URL(url)), exception);
  await through({}, async (it) => {
    const urls = [`http://127.0.0.1:${plain.port}/`, `https://localhost:${secure.port}/`];
    const noProxy = ['127.0.0.1', `localhost:${secure.port}`];
    const answers = await post({ proxy: it.url, noProxy }, ...urls);
    assert.equal(
      answers.map(({ status }) => status),
      [200, 200],
    );
    const guarded = await post({ proxy: it.url, noProxy, allowedNetworks: [] }, ...urls);
    assert.ok(guarded.every(({ failure }) => failure?.class === 'refused_address'));
    const stop = proxyProcess({ proxy: it.url, ca_file: trusted.file, no_proxy: ['127.0.0.1'] });
    try {
      assert.is(await (await fetch(urls[0]!)).text(), 'plain');
      assert.is(await answerOf(http.request(urls[0]!)), 'plain');
      assert.equal(it.asked, []);
    } finally {
      await stop();
    }
  });
});

proxy('an answer of the proxy itself to plain http is named as its own', async () => {
  const gone = await freePort();
  await through({}, async (it) => {
    const [answer] = await post({ proxy: it.url }, `http://localhost:${gone}/`);
    assert.equal([answer!.status, answer!.failure], [502, null]);
    assert.is(
      answer!.remark,
      `This is the answer of the proxy 127.0.0.1:${it.port} if it could not reach the endpoint.`,
    );
  });
  for (const headers of [
    { 'x-squid-error': 'ERR_CONNECT_FAIL 111' },
    { 'proxy-status': 'edge; error=connection_refused' },
    { server: 'tinyproxy/1.11.1' },
  ]) {
    const marking = await endpoint({ answer: { status: 502, headers, body: 'unreachable' } });
    const [answer] = await post({ proxy: marking.url }, `http://localhost:${plain.port}/`);
    assert.equal(answer!.failure, {
      class: 'proxy',
      message: `The proxy 127.0.0.1:${marking.port} answered 502 Bad Gateway when asked for a connection to localhost:${plain.port}; it could not reach the host.`,
    });
    await marking.close();
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

proxy(
  'names of a project whose servers are silent do not keep requests of another from the proxy, and what was not looked up does not pass',
  async () => {
    const resolves = { 'n.test': '127.0.0.1', 'late.test': '127.0.0.1' };
    const servers = await nameServer((name) =>
      name.startsWith('silent') ? 'silence' : ['127.0.0.1'],
    );
    const inside = () =>
      through({ resolves }, async (it) => {
        const sender = new RequestSender({
          ...OPTIONS,
          caFile: trusted.file,
          lookupsPerProject: 1,
          proxy: it.url,
        });
        const to = (projectId: string, origin: string) =>
          new Promise<RequestResult>((done) =>
            sender.send({ ...REQUEST, projectId, url: `${origin}/` }, done),
          );
        try {
          const silent = [
            to('p', `http://silent.test:${plain.port}`),
            to('p', `https://silent.test:${secure.port}`),
          ];
          const late = [
            to('p', `http://late.test:${plain.port}`),
            to('p', `https://late.test:${secure.port}`),
          ];
          const other = [
            to('q', `http://n.test:${plain.port}`),
            to('q', `https://n.test:${secure.port}`),
          ];
          const first = await Promise.race([...silent, Promise.all(other)]);
          assert.ok(Array.isArray(first), 'the other project comes first');
          assert.is(first[0]!.status, 200);
          assert.ok((await Promise.all(late)).every(({ unsent }) => unsent));
          await Promise.all(silent);
          assert.not.ok(it.asked.some((line) => line.includes('late.test')));
        } finally {
          await sender.close();
        }
      });
    try {
      await askingServers([servers.address], inside);
    } finally {
      await servers.close();
    }
  },
);

proxy('a password of the proxy with a percent sign that is not encoded is taken as it stands', () =>
  through({ login: 'ops:100%' }, async (it) => {
    const [answer] = await post(
      { proxy: `http://ops:100%@127.0.0.1:${it.port}` },
      `http://localhost:${plain.port}/`,
    );
    assert.is(answer!.status, 200);
  }),
);

proxy('a tunnel that is waited for ends with the sender', async () => {
  const silent = net.createServer();
  const port = await loopback(silent);
  const asked = new Promise<net.Socket>((resolve) => silent.once('connection', resolve));
  const sender = new RequestSender({ ...OPTIONS, proxy: `http://127.0.0.1:${port}` });
  const answer = new Promise<RequestResult>((done) =>
    sender.send({ ...REQUEST, url: 'https://localhost/', timeoutMs: 60_000 }, done),
  );
  const socket = await within(asked, 10_000, 'the proxy to be asked');
  try {
    const closed = new Promise((resolve) => socket.resume().once('close', resolve));
    await sender.close();
    await within(
      closed,
      2_500,
      'the connection to the proxy to end, which by itself it does after 5 s',
    );
    assert.ok((await within(answer, 10_000, 'an answer')).failure);
  } finally {
    socket.destroy();
    silent.close();
  }
});

proxy('the certificate of an endpoint is verified behind the proxy as well', () =>
  through({}, async (it) => {
    const [unknown] = await post(
      { proxy: it.url, caFile: undefined },
      `https://localhost:${secure.port}/`,
    );
    assert.is(unknown!.failure?.class, 'tls');
  }),
);

proxy(
  'delivery.ca_file: its authorities are believed beside the usual ones, with and without a proxy',
  async () => {
    const url = `https://localhost:${secure.port}/`;
    assert.is((await post({ caFile: undefined }, url))[0]!.failure?.class, 'tls');
    assert.is((await post({}, url))[0]!.status, 200);
  },
);

proxy('delivery.ca_file: a file that cannot be used is told at once', () => {
  for (const [caFile, reason] of [
    ['/none.pem', 'there is no such file'],
    [trusted.file.replace('ca.pem', 'ca.key'), 'it holds no PEM certificate'],
  ] as const) {
    try {
      new RequestSender({ ...OPTIONS, caFile });
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
      settings: {
        delivery: { allowed_networks: ['127.0.0.0/8'], proxy: it.url, ca_file: trusted.file },
      },
    });
    try {
      const url = `https://localhost:${secure.port}/`;
      const endpoint = cachedEndpoint({ url, secrets: [secretRecord(makeSecret())] });
      const delivery = { id: newId(), headers: {}, body: Buffer.from('{}') } as InFlightDelivery;
      const sent = { endpoint, delivery, trace: undefined };
      const answer = await within(
        running.wiring.destination.send(sent, { aborted: false }),
        15_000,
        'the answer',
      );
      assert.is(answer.outcome, 'delivered', JSON.stringify(answer));
      assert.equal(it.asked, [`CONNECT localhost:${secure.port}`]);
    } finally {
      await running.close();
      await db.close();
    }
  }),
);

function answerOf(request: http.ClientRequest): Promise<string> {
  return new Promise((resolve, reject) => {
    request.on('error', reject);
    request.on('response', (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('end', () => resolve(text));
    });
    request.end();
  });
}

const processProxied = (
  options: Parameters<typeof httpProxy>[0],
  test: (it: HttpProxy) => Promise<void>,
) =>
  through(options, async (it) => {
    const stop = proxyProcess({ proxy: it.url, ca_file: trusted.file, no_proxy: [] });
    try {
      await test(it);
    } finally {
      await stop();
    }
  });

proxy(
  'the proxy of a process is that of fetch and of every agent of node:http and node:https, whoever made it',
  () =>
    processProxied({ login: 'ada:secret of the proxy' }, async (it) => {
      const ca = fs.readFileSync(trusted.file);
      const agents = {
        http: new http.Agent({ keepAlive: true }),
        https: new https.Agent({ keepAlive: true, ca, maxSockets: 1 }),
      };
      const plainUrl = plain.url;
      const { origin } = new URL(plainUrl);
      const secureUrl = `https://localhost:${secure.port}/`;
      const tls = `over TLS to localhost:${secure.port}`;
      try {
        assert.is(await (await fetch(plainUrl, { method: 'POST', body: 'x' })).text(), 'plain');
        assert.is(await (await fetch(secureUrl)).text(), tls);
        const headers = ['host', new URL(plainUrl).host, 'x-of', 'an array'];
        for (const options of [{}, { agent: agents.http }, { agent: agents.http }, { headers }]) {
          assert.is(await answerOf(http.request(plainUrl, { method: 'PUT', ...options })), 'plain');
        }
        assert.is(await answerOf(https.request(secureUrl, { ca })), tls);
        // Concurrent requests over the single allowed socket.
        const many = await Promise.all(
          [1, 2, 3].map(() => answerOf(https.request(secureUrl, { agent: agents.https }))),
        );
        assert.equal(many, [tls, tls, tls]);
        const tunnel = `CONNECT localhost:${secure.port}`;
        const path = new URL(plainUrl).pathname;
        const puts = Array<string>(4).fill(`PUT ${origin}${path}`);
        assert.equal(it.asked, [`POST ${origin}${path}`, tunnel, ...puts, tunnel, tunnel]);
      } finally {
        agents.http.destroy();
        agents.https.destroy();
      }
    }),
);

proxy(
  'a process whose proxy is away fails with the name of the proxy, and the requests that wait for a socket too',
  async () => {
    const place = `127.0.0.1:${await freePort()}`;
    const stop = proxyProcess({ proxy: `http://${place}` });
    const agent = new https.Agent({ maxSockets: 1 });
    try {
      const failures = await Promise.all(
        ['https://localhost/', 'https://localhost/', 'http://localhost/'].map((url) =>
          answerOf(
            url.startsWith('https') ? https.request(url, { agent }) : http.request(url),
          ).catch(({ message }: Error) => message),
        ),
      );
      const away = `The proxy ${place} cannot be reached: nothing listens there.`;
      assert.equal(failures, [away, away, away]);
      const { cause } = (await fetch('https://localhost/').catch((error: unknown) => error)) as {
        cause: Error;
      };
      assert.is(cause.message, away);
    } finally {
      agent.destroy();
      await stop();
    }
  },
);

proxy('metadata of the machine is never asked for through the proxy of a process', () =>
  processProxied({}, async (it) => {
    const name = 'AWS_CONTAINER_CREDENTIALS_FULL_URI';
    process.env[name] = `${plain.url}/credentials`;
    try {
      assert.is(await answerOf(http.request(plain.url, { agent: false })), 'plain');
      assert.is(await (await fetch(plain.url)).text(), 'plain');
      // Link-local: here nothing answers, or another host refuses.
      const signal = AbortSignal.timeout(300);
      await Promise.allSettled(
        ['169.254.169.254', '[fd00:ec2::254]'].map((host) =>
          answerOf(http.request(`http://${host}/`, { agent: false, signal })),
        ),
      );
      assert.equal(it.asked, []);
      assert.is(it.connections, 0);
    } finally {
      delete process.env[name];
    }
    await answerOf(http.request(plain.url, { agent: false }));
    assert.is(it.asked.length, 1);
  }),
);

proxy('without its proxy a process sends as before', async () => {
  let asked: readonly string[] = [];
  await processProxied({}, async (it) => {
    await proxyProcess({})();
    await answerOf(http.request(plain.url, { agent: false }));
    asked = it.asked;
  });
  assert.is(await answerOf(http.request(plain.url, { agent: false })), 'plain');
  assert.is(await (await fetch(plain.url)).text(), 'plain');
  assert.is(asked.length, 1);
});

proxy.run();
