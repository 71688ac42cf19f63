import net from 'node:net';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  RequestSender,
  type RequestResult,
  type EndpointRequest,
  type RequestSenderOptions,
} from '#agent/destinations/http/sender';
import { TokenBuckets } from '#core/process/token-buckets';
import { withoutDescriptors } from '../../../support/descriptors.js';
import { endpoint, type Endpoint } from '../../../support/endpoint.js';
import { askingServers, nameServer, type NameServer } from '../../../support/name-server.js';
import { freePort } from '../../../support/ports.js';
import { until, within } from '../../../support/until.js';

const send = suite('agent/destinations/http/sender');

const LOOPBACK = ['127.0.0.0/8', '::1'];
const CAP = 1000;

type Post = (
  url: string,
  request?: Partial<EndpointRequest> & { readonly responsePace?: TokenBuckets },
) => Promise<RequestResult>;

/** Runs a test with a new sender; `post` sends a request and returns its only answer. */
async function withSender(
  test: (post: Post) => Promise<void>,
  options: Partial<RequestSenderOptions> = {},
): Promise<void> {
  const sender = new RequestSender({
    allowedNetworks: LOOPBACK,
    maxResponseBytes: CAP,
    lookupsPerProject: 32,
    ...options,
  });
  let answers = 0;
  let requests = 0;
  const post: Post = (url, { responsePace, ...request } = {}) => {
    requests++;
    const answered = new Promise<RequestResult>((resolve) =>
      sender.send(
        {
          projectId: 'p',
          url,
          headers: ['content-type', 'application/json'],
          body: Buffer.from('{}'),
          timeoutMs: 20_000,
          ...request,
        },
        (answer) => {
          answers++;
          resolve(answer);
        },
        responsePace,
      ),
    );
    return within(answered, 25_000, `an answer of ${url}`);
  };
  try {
    await test(post);
  } finally {
    await sender.close();
  }
  assert.is(answers, requests, 'every request is answered exactly once');
}

async function withEndpoint(
  options: Parameters<typeof endpoint>[0],
  test: (receiver: Endpoint) => Promise<void>,
): Promise<void> {
  const receiver = await endpoint(options);
  try {
    await test(receiver);
  } finally {
    await receiver.close();
  }
}

/** Runs a test with a server that answers each connection's first bytes by hand. */
async function withSocket(
  answer: (socket: net.Socket, connection: number) => void,
  test: (url: string) => Promise<void>,
): Promise<void> {
  const sockets = new Set<net.Socket>();
  let connections = 0;
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    const connection = connections++;
    socket.once('data', () => answer(socket, connection));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await test(`http://127.0.0.1:${(server.address() as net.AddressInfo).port}`);
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
}

send('status, headers and body of the response are captured', () =>
  withEndpoint(
    {
      answer: {
        status: 418,
        headers: { 'X-Teapot': 'yes', 'retry-after': '7' },
        body: 'short and stout: é',
      },
    },
    (receiver) =>
      withSender(async (post) => {
        const answer = await post(`${receiver.url}/hooks?a=1`);
        assert.is(answer.status, 418);
        assert.is(answer.headers['x-teapot'], 'yes');
        assert.is(answer.headers['retry-after'], '7');
        assert.is(answer.body, 'short and stout: é');
        assert.is(answer.failure, null);
      }),
  ),
);

send('a body is decoded by the charset that is named, and stays within the limit', () =>
  withSender(async (post) => {
    const cases: [type: string, body: Buffer, text: string][] = [
      ['text/plain; charset=iso-8859-1', Buffer.from('caf\xe9', 'latin1'), 'café'],
      ['text/html;Charset="Windows-1252"', Buffer.from([0x80, 0x31]), '€1'],
      ['text/plain; charset=shift_jis', Buffer.from([0x83, 0x47, 0x83, 0x89, 0x81]), 'エラ'],
      ['text/plain; charset=utf-16le', Buffer.from('\ufefffalsch ß', 'utf16le'), 'falsch ß'],
      ['text/plain; charset=utf-16', Buffer.from('\ufeffß', 'utf16le').swap16(), 'ß'],
      ['text/plain; charset=GB18030', Buffer.from([0xb4, 0xed]), '错'],
      ['text/plain; charset=utf-8', Buffer.from('ü'), 'ü'],
      ['text/plain; charset=klingon', Buffer.from('ü'), 'ü'],
      ['text/plain', Buffer.from('ü'), 'ü'],
      ['text/plain; charset=windows-1252', Buffer.alloc(CAP, 0x80), '€'.repeat(CAP / 3)],
    ];
    for (const [type, body, text] of cases) {
      for (const encoding of ['identity', 'gzip']) {
        const answer = {
          headers: { 'content-type': type, 'content-encoding': encoding },
          body: encoding === 'gzip' ? gzipSync(body) : body,
        };
        await withEndpoint({ answer }, async (receiver) =>
          assert.is((await post(receiver.url)).body, text, `${type}, ${encoding}`),
        );
      }
    }
  }),
);

send('header values are UTF-8 where they are valid, otherwise ISO 8859-1', () =>
  withSocket(
    (socket, connection) =>
      socket.end(
        Buffer.concat([
          Buffer.from(
            'HTTP/1.1 200 OK\r\nx-utf: gr\u00fc\u00dfe \u20ac\r\nx-latin: gr\xfc',
            'utf8',
          ).subarray(0, -2),
          Buffer.from([0xfc]),
          // The second head is cut.
          Buffer.from(connection === 0 ? '\r\ncontent-length: 0\r\n\r\n' : '\r\n'),
        ]),
      ),
    (url) =>
      withSender(async (post) => {
        for (const _ of ['whole', 'cut']) {
          const { headers } = await post(url);
          assert.equal([headers['x-utf'], headers['x-latin']], ['grüße €', 'grü']);
        }
      }),
  ),
);

send('connections close at their age, also busy ones, and whatever the server announces', () =>
  withEndpoint({ answer: { headers: { 'keep-alive': 'timeout=600' } } }, (receiver) =>
    withSender(
      async (post) => {
        const untilMs = performance.now() + 2_000;
        while (performance.now() < untilMs) assert.is((await post(receiver.url)).status, 200);
        const { total } = receiver.connections;
        // A pool keeps a spare connection.
        assert.ok(total >= 4 && total <= 14, `${total} connections, each of 400 to 500 ms`);
        assert.is(receiver.requests.at(-1)!.headers['connection'], 'keep-alive');
      },
      { connectionAgeMs: 500 },
    ),
  ),
);

send(
  'an agent without a free descriptor sends nothing, blames nobody, and goes on when there is one',
  () =>
    withEndpoint({}, async (receiver) => {
      const sender = new RequestSender({
        allowedNetworks: LOOPBACK,
        maxResponseBytes: CAP,
        lookupsPerProject: 32,
      });
      const post = () =>
        new Promise<RequestResult>((resolve) => {
          const body = Buffer.from('{}');
          const { url } = receiver;
          sender.send({ projectId: 'p', url, headers: [], body, timeoutMs: 5_000 }, resolve);
        });
      await withoutDescriptors(process.pid, async () => {
        const answer = await post();
        assert.equal([answer.status, answer.unsent], [null, 'shortage']);
        assert.is(
          answer.failure?.message,
          'This gateway could not open a connection; the request is sent later.',
        );
        assert.match(sender.shortage!.reason, /\(EMFILE\)\. Raise its limit: LimitNOFILE/);
      });
      assert.is((await post()).status, 200);
      await sender.close();
    }),
);

send('the request is a POST of the exact bytes with the headers as given', () =>
  withEndpoint({}, (receiver) =>
    withSender(async (post) => {
      const body = Buffer.from('{ "id":9007199254740993 }');
      await post(`${receiver.url}/hooks?a=%20b&c`, {
        body,
        headers: ['Content-Type', 'application/json', 'X-Shop', 'Jos\xe9'],
      });
      const [request] = receiver.requests;
      assert.is(request?.method, 'POST');
      assert.is(request?.url, '/hooks?a=%20b&c');
      assert.ok(request?.body.equals(body));
      assert.is(request?.headers['content-length'], String(body.length));
      assert.is(request?.headers['x-shop'], 'Jos\xe9');
      assert.is(request?.headers['host'], `127.0.0.1:${receiver.port}`);
    }),
  ),
);

send('redirects are not followed', () =>
  withEndpoint({}, (other) =>
    withEndpoint(
      {
        answer: (_, number) => ({
          status: [301, 302, 303, 307, 308][number] ?? 200,
          headers: { location: other.url },
        }),
      },
      (receiver) =>
        withSender(async (post) => {
          for (const status of [301, 302, 303, 307, 308]) {
            const answer = await post(receiver.url);
            assert.is(answer.status, status);
            assert.equal(answer.failure, {
              class: 'status',
              message: `The endpoint answered ${status}, a redirect to ${other.url}. Redirects are not followed: if it has moved, change its URL.`,
            });
          }
          assert.is(other.requests.length, 0);
        }),
    ),
  ),
);

send('of a redirect no more is told than the beginning of where to, and a 304 is no redirect', () =>
  withEndpoint(
    {
      answer: (_, number) =>
        number === 0
          ? { status: 302, headers: { location: `http://x/${'y'.repeat(5_000)}` } }
          : { status: 304 },
    },
    (receiver) =>
      withSender(async (post) => {
        assert.match(
          (await post(receiver.url)).failure?.message ?? '',
          /a redirect to http:\/\/x\/y{191}…\. Redirects/,
        );
        assert.is((await post(receiver.url)).failure, null);
      }),
  ),
);

send('of a body no more is kept than the cap, and the connection is used again', () =>
  withEndpoint({ answer: { body: 'x'.repeat(100_000) } }, (receiver) =>
    withSender(async (post) => {
      for (let n = 0; n < 3; n++) {
        const answer = await post(receiver.url);
        assert.is(answer.body, 'x'.repeat(CAP));
        assert.is(answer.failure, null);
      }
      // A request sent from the callback of another can still find its connection busy.
      assert.ok(receiver.connections.total <= 2);
    }),
  ),
);

send('with a cap of nothing no body is kept', () =>
  withEndpoint(
    { answer: { body: gzipSync('x'), headers: { 'content-encoding': 'gzip' } } },
    (receiver) =>
      withSender(
        async (post) =>
          assert.equal(
            [(await post(receiver.url)).body, (await post(receiver.url)).status],
            ['', 200],
          ),
        {
          maxResponseBytes: 0,
        },
      ),
  ),
);

send('a body that never ends costs its connection, not the delivery', () =>
  withSocket(
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      const chunk = `${(65_536).toString(16)}\r\n${'x'.repeat(65_536)}\r\n`;
      const pour = () => {
        while (!socket.destroyed && socket.write(chunk));
      };
      socket.on('drain', pour);
      pour();
    },
    (url) =>
      withSender(async (post) => {
        const answer = await post(url);
        assert.is(answer.status, 200);
        assert.is(answer.failure, null);
        assert.is(answer.body.length, CAP);
      }),
  ),
);

send('compressed bodies are read, whatever the case of their encoding', () =>
  withSender(async (post) => {
    const text = 'José '.repeat(20);
    const encodings: [string, Buffer][] = [
      ['gzip', gzipSync(text)],
      ['GZIP', gzipSync(text)],
      ['x-gzip', gzipSync(text)],
      ['deflate', deflateSync(text)],
      ['br', brotliCompressSync(text)],
      ['identity', Buffer.from(text)],
    ];
    for (const [encoding, body] of encodings) {
      await withEndpoint(
        { answer: { body, headers: { 'content-encoding': encoding } } },
        async (receiver) => {
          assert.equal(
            await post(receiver.url).then(({ body, failure }) => [body, failure]),
            [text, null],
            encoding,
          );
        },
      );
    }
  }),
);

send('a body that expands to a gigabyte gives the cap and no more, and takes no more memory', () =>
  withSender(
    async (post) => {
      const bombs: [string, Buffer][] = [
        // Ten gzip members of 100 MB.
        ['gzip', Buffer.concat(Array<Buffer>(10).fill(gzipSync(gzipBomb())))],
        ['deflate', deflateSync(gzipBomb())],
        ['br', brotliCompressSync(gzipBomb())],
      ];
      const peakMb = () => process.resourceUsage().maxRSS / 1024;
      const before = peakMb();
      for (const [encoding, body] of bombs) {
        // The cap exceeds the size of the compressed body, so that the whole bomb arrives.
        await withEndpoint(
          { answer: { body, headers: { 'content-encoding': encoding } } },
          async (receiver) => {
            assert.is((await post(receiver.url)).body.length, 1024 * 1024, encoding);
          },
        );
      }
      assert.ok(peakMb() - before < 60, `${peakMb() - before} MB more than before`);
    },
    { maxResponseBytes: 1024 * 1024 },
  ),
);

for (const [what, body, headers] of [
  ['as it is', 'x'.repeat(50_000), {}],
  ['compressed', gzipSync('x'.repeat(60_000)), { 'content-encoding': 'gzip' }],
] as const)
  send(
    `limits.response_bytes_per_second: of responses of a project beyond, the beginning is kept, and all of those of others: ${what}`,
    () =>
      withEndpoint({ answer: { body, headers } }, (receiver) =>
        withSender(
          async (post) => {
            const responsePace = new TokenBuckets(100_000, 100_000);
            const lengths = async (projectId: string, count: number, url = receiver.url) => {
              const answers = await Promise.all(
                Array.from({ length: count }, () => post(url, { projectId, responsePace })),
              );
              return answers.map((answer) => answer.body.length).sort((a, b) => b - a);
            };
            assert.equal(await lengths('p', 5), [50_000, 50_000, 50_000, 1_000, 1_000]);
            await withEndpoint({ answer: { body: 'short' } }, async ({ url }) =>
              assert.equal(await lengths('p', 1, url), [5]),
            );
            assert.equal(await lengths('q', 1), [50_000]);
          },
          { maxResponseBytes: 50_000 },
        ),
      ),
  );

send('what a response may have had and did not is not counted', () =>
  withEndpoint(
    { answer: { body: gzipSync('x'.repeat(2000)), headers: { 'content-encoding': 'gzip' } } },
    (receiver) =>
      withSender(
        async (post) => {
          const responsePace = new TokenBuckets(100_000, 100_000);
          for (let k = 0; k < 20; k++)
            assert.is((await post(receiver.url, { responsePace })).body.length, 2000);
        },
        { maxResponseBytes: 50_000 },
      ),
  ),
);

function gzipBomb(): Buffer {
  return Buffer.alloc(100_000_000, 'x');
}

send('of a body whose compression is broken, cut off or unknown the delivery does not fail', () =>
  withSender(async (post) => {
    const whole = gzipSync(
      'x'.repeat(500) + Array.from({ length: 500 }, (_, n) => String(n)).join(),
    );
    const cases: [string, Buffer, RegExp][] = [
      ['gzip', Buffer.from('this is no gzip'), /^$/],
      ['gzip', whole.subarray(0, whole.length - 200), /^x{100}/],
      [
        'gzip',
        Buffer.concat([whole.subarray(0, 60), Buffer.alloc(200, 0xff)]),
        /^x{500}0,1,2,3,4,5,/,
      ],
      ['br', Buffer.from('this is no brotli'), /^$/],
      ['deflate', deflateRawSync('raw'), /^$/],
      ['zstd', Buffer.from('whatever'), /^\(8 bytes with content-encoding zstd\)$/],
      [
        'gzip, gzip',
        gzipSync(gzipSync('twice')),
        /^\(\d+ bytes with content-encoding gzip, gzip\)$/,
      ],
    ];
    for (const [encoding, body, expected] of cases) {
      await withEndpoint(
        { answer: { body, headers: { 'content-encoding': encoding } } },
        async (receiver) => {
          const answer = await post(receiver.url);
          assert.equal([answer.status, answer.failure], [200, null], encoding);
          assert.match(answer.body, expected, encoding);
        },
      );
    }
  }),
);

send('connections are kept alive and used again, one for each request that is under way', () =>
  withEndpoint({}, (receiver) =>
    withSender(async (post) => {
      for (let n = 0; n < 10; n++) await post(receiver.url);
      assert.ok(receiver.connections.total <= 2);
      receiver.answer({ delayMs: 200 });
      await Promise.all(Array.from({ length: 5 }, () => post(receiver.url)));
      assert.ok(receiver.connections.total >= 5);
    }),
  ),
);

send('answers without a body and interim answers are whole', () =>
  withSocket(
    (socket) =>
      socket.write(
        'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\nx-a: b\r\n\r\n',
      ),
    (url) =>
      withSender(async (post) => {
        const answer = await post(url);
        assert.equal(
          [
            answer.status,
            answer.body,
            answer.headers['x-a'],
            answer.headers['link'],
            answer.failure,
          ],
          [204, '', 'b', undefined, null],
        );
      }),
  ),
);

send(
  'informational answers that nobody asked for are skipped, however their bytes arrive',
  async () => {
    const interim = [100, 102, 103, 100]
      .map((status) => `HTTP/1.1 ${status} Interim\r\nlink: </a>\r\n\r\n`)
      .join('');
    const bytes = `${interim}HTTP/1.1 200 OK\r\ncontent-length: 22\r\n\r\nHTTP/1.1 100 is a body`;
    const pieces = {
      'in one piece': [bytes],
      'byte by byte': Array.from(bytes),
      'with the answer later': [interim, bytes.slice(interim.length)],
    };
    for (const [how, all] of Object.entries(pieces)) {
      await withSocket(
        (socket) => {
          socket.setNoDelay(true);
          const next = (n: number) =>
            void (n < all.length && socket.write(all[n]!, () => setImmediate(next, n + 1)));
          next(0);
        },
        (url) =>
          withSender(async (post) => {
            const { status, body, headers, failure } = await post(url);
            assert.equal(
              [status, body, headers['link'], failure],
              [200, 'HTTP/1.1 100 is a body', undefined, null],
              how,
            );
          }),
      );
    }
  },
);

send('informational answers without end are a failure of the protocol', async () => {
  const cases = [
    ['HTTP/1.1 100 Continue\r\n\r\n', 'more than 16 informational answers (1xx)'],
    [
      `HTTP/1.1 103 Early Hints\r\nlink: ${'x'.repeat(20_000)}`,
      'its headers are larger than 300 KB',
    ],
  ] as const;
  for (const [endless, reason] of cases) {
    await withSocket(
      (socket) => {
        const pour = () =>
          void (!socket.destroyed && socket.write(endless, () => setImmediate(pour)));
        pour();
      },
      (url) =>
        withSender(async (post) => {
          const { status, failure } = await post(url);
          assert.equal(
            [status, failure],
            [
              null,
              {
                class: 'protocol',
                message: `What ${new URL(url).host} answers cannot be read: ${reason}.`,
              },
            ],
          );
        }),
    );
  }
});

send('an endpoint that accepts and never answers is a timeout', () =>
  withEndpoint({ answer: { hang: true } }, (receiver) =>
    withSender(async (post) => {
      const { status, failure } = await post(receiver.url, { timeoutMs: 150 });
      assert.equal(
        [status, failure?.class, failure?.message],
        [null, 'timeout', 'No complete response within 150 ms.'],
      );
      await until('the connection to be given up', () => receiver.connections.open === 0);
    }),
  ),
);

send('an answer that never ends has its status, and a remark', () =>
  withSocket(
    (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf'),
    (url) =>
      withSender(async (post) => {
        const { status, failure, body, remark } = await post(url, { timeoutMs: 150 });
        assert.equal([status, failure, body], [200, null, 'half']);
        assert.is(
          remark,
          'The endpoint began to answer 200, and its response was not complete within 150 ms.',
        );
      }),
  ),
);

send('a peer that takes the connection and speaks no TLS is a timeout', () =>
  withSocket(
    () => undefined,
    (url) =>
      withSender(async (post) => {
        const { status, failure } = await post(url.replace('http:', 'https:'), { timeoutMs: 150 });
        assert.equal([status, failure?.class], [null, 'timeout']);
      }),
  ),
);

send('a connection that ends before the answer is a reset, in the middle of it a remark', () =>
  withSender(async (post) => {
    await withEndpoint({ answer: { close: true } }, async (receiver) => {
      const { status, failure } = await post(receiver.url);
      assert.equal([status, failure?.class], [null, 'reset']);
      assert.is(
        failure?.message,
        `127.0.0.1:${receiver.port} closed the connection without an answer.`,
      );
    });
    await withSocket(
      (socket) => socket.resetAndDestroy(),
      async (url) => {
        assert.is((await post(url)).failure?.class, 'reset');
      },
    );
    await withSocket(
      (socket) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf');
        setTimeout(() => socket.destroy(), 50);
      },
      async (url) => {
        const { status, failure, remark } = await post(url);
        assert.equal([status, failure], [200, null]);
        assert.is(
          remark,
          `${new URL(url).host} closed the connection in the middle of its answer.`,
        );
      },
    );
  }),
);

send('a port on which nothing listens is a failure to connect', () =>
  withSender(async (post) => {
    const port = await freePort();
    for (const host of ['127.0.0.1', 'localhost', '[::1]']) {
      const { status, failure } = await post(`http://${host}:${port}`);
      assert.equal([status, failure?.class], [null, 'connect'], host);
      assert.is(failure?.message, `No connection to ${host}:${port}: nothing listens there.`);
    }
  }),
);

send('a name that does not resolve is a failure of DNS', () =>
  withSender(async (post) => {
    const { status, failure } = await post('http://no-such-host.invalid/');
    assert.equal([status, failure?.class], [null, 'dns']);
    assert.match(failure?.message ?? '', /^no-such-host\.invalid cannot be looked up: .+\.$/);
  }),
);

/**
 * Runs a test with a name server that ignores names starting with `silent`, and resolves others to
 * this machine.
 */
async function withNames(test: (servers: NameServer) => Promise<void>): Promise<void> {
  const servers = await nameServer((name) =>
    name.startsWith('silent') ? 'silence' : ['127.0.0.1'],
  );
  try {
    await askingServers([servers.address], () => test(servers));
  } finally {
    await servers.close();
  }
}

const SILENT =
  'cannot be looked up: no name server answered within 5000 ms. Check the name servers of its domain.';

send(
  'names whose servers are silent fail by themselves, and hold up no request of another project',
  () =>
    withEndpoint({}, (receiver) =>
      withNames(() =>
        withSender(async (post) => {
          const to = (name: string, projectId: string) =>
            post(`http://${name}.test:${receiver.port}/`, { projectId });
          const silent = Promise.all(
            Array.from({ length: 40 }, (_, n) => to(`silent${n}`, 'noisy')),
          );
          const others = await Promise.race([
            silent,
            Promise.all(Array.from({ length: 20 }, (_, n) => to(`n${n}`, `p${n}`))),
          ]);
          assert.equal(
            others.map(({ status }) => status),
            Array(20).fill(200),
          );
          const answers = await silent;
          const failed = answers.filter(({ unsent }) => !unsent);
          assert.is(failed.length, 32);
          for (const [n, { failure }] of failed.entries())
            assert.equal(failure, { class: 'dns', message: `silent${n}.test ${SILENT}` });
          assert.is(receiver.requests.length, 20);
        }),
      ),
    ),
);

send(
  'a request whose name was not looked up for want of a place is unsent, also when its time ends first',
  () =>
    withEndpoint({}, (receiver) =>
      withNames(() =>
        withSender(
          async (post) => {
            const to = (name: string, timeoutMs: number) =>
              post(`http://${name}.test:${receiver.port}/`, { timeoutMs });
            assert.is((await to('open', 20_000)).status, 200);
            const silent = to('silent', 1_500);
            const unsent = await Promise.all([to('waits', 20_000), to('hurries', 500)]);
            assert.ok(unsent.every((it) => it.unsent));
            assert.equal((await silent).failure, {
              class: 'dns',
              message: `silent.test ${SILENT.replace('5000', '1500')}`,
            });
            assert.is((await to('open', 20_000)).status, 200, 'an open connection needs no lookup');
          },
          { lookupsPerProject: 1 },
        ),
      ),
    ),
);

send('a certificate that nobody vouches for is a failure of TLS', () =>
  withEndpoint({ tls: true }, (receiver) =>
    withSender(async (post) => {
      for (const url of [receiver.url, receiver.url.replace('localhost', '127.0.0.1')]) {
        const { status, failure } = await post(url);
        assert.equal([status, failure?.class], [null, 'tls']);
        assert.match(
          failure?.message ?? '',
          /^No secure connection to \S+:\d+: its certificate is .+\.$/,
        );
      }
      assert.is(receiver.requests.length, 0);
    }),
  ),
);

send('a peer that answers TLS with something else is a failure of TLS', () =>
  withSocket(
    (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
    (url) =>
      withSender(async (post) => {
        assert.is((await post(url.replace('http:', 'https:'))).failure?.class, 'tls');
      }),
  ),
);

send('an answer that is not HTTP is a failure of the protocol', () =>
  withSender(async (post) => {
    for (const bytes of ['SSH-2.0-OpenSSH_9.2\r\n', 'HTTP/1.1 abc\r\n\r\n']) {
      await withSocket(
        (socket) => socket.write(bytes),
        async (url) => {
          assert.is((await post(url)).failure?.class, 'protocol', bytes);
        },
      );
    }
  }),
);

send(
  'headers of an answer that are too large cost no delivery, and the remark does not quote them',
  () =>
    withSocket(
      (socket) => socket.write(`HTTP/1.1 200 OK\r\nx-a: ${'hunter2'.repeat(50_000)}\r\n\r\n`),
      (url) =>
        withSender(async (post) => {
          const { status, failure, remark } = await post(url);
          assert.equal([status, failure], [200, null]);
          assert.is(
            remark,
            `What ${new URL(url).host} answers cannot be read: its headers are larger than 300 KB.`,
          );
        }),
    ),
);

send(
  'an answer that announces more than is kept costs its connection as soon as enough is there',
  () => {
    let sent = 0;
    return withSocket(
      (socket) => {
        const piece = Buffer.alloc(10_000, 'x');
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n');
        // Slow enough that the deadline precedes further data.
        const timer = setInterval(() => socket.write(piece) && (sent += piece.length), 20);
        socket.once('close', () => clearInterval(timer));
      },
      (url) =>
        withSender(async (post) => {
          const answer = await post(url);
          assert.equal([answer.status, answer.failure, answer.body.length], [200, null, CAP]);
          assert.ok(sent < 200_000, `${sent} bytes were read`);
        }),
    );
  },
);

send('what HTTP cannot carry is unsendable, and says so without a request', () =>
  withEndpoint({}, (receiver) =>
    withSender(async (post) => {
      for (const headers of [
        ['x-a', 'line\nbreak'],
        ['x-a', '€'],
        ['bad name', 'x'],
        ['transfer-encoding', 'chunked'],
      ]) {
        const { status, failure } = await post(receiver.url, { headers });
        assert.equal([status, failure?.class], [null, 'unsendable'], headers.join(': '));
      }
      for (const url of ['no url', 'ftp://example.com/', 'mailto:a@example.com', ''])
        assert.is((await post(url)).failure?.class, 'unsendable', url);
      assert.is(receiver.requests.length, 0);
      assert.is((await post(receiver.url)).status, 200);
    }),
  ),
);

send('loopback is refused in every spelling, before a connection is opened', () =>
  withEndpoint({}, (receiver) =>
    withSender(
      async (post) => {
        const hosts = [
          '127.0.0.1',
          'localhost',
          'LOCALHOST',
          '127.1',
          '2130706433',
          '0x7f000001',
          '0177.0.0.1',
          '0',
          '[::1]',
          '[::ffff:127.0.0.1]',
          '[::ffff:7f00:1]',
          '[64:ff9b::7f00:1]',
          '127.0.0.1.',
        ];
        for (const host of hosts) {
          const { status, failure } = await post(`http://${host}:${receiver.port}/`);
          assert.equal([status, failure?.class], [null, 'refused_address'], host);
          assert.match(failure?.message ?? '', 'delivery.allowed_networks');
        }
        assert.is(receiver.connections.total, 0);
      },
      { allowedNetworks: [] },
    ),
  ),
);

send('a name is refused for the address behind it, and the sentence tells both', () =>
  withSender(
    async (post) => {
      assert.match(
        (await post('http://localhost:1/')).failure?.message ?? '',
        /^localhost resolves to .*127\.0\.0\.1.*, which is in a private or reserved network/,
      );
      assert.match(
        (await post('http://10.0.0.1/')).failure?.message ?? '',
        /^10\.0\.0\.1 is in a private or reserved network/,
      );
      for (const host of ['10.0.0.1', '168.63.129.16', '192.88.99.1'])
        assert.is((await post(`https://${host}/`)).failure?.class, 'refused_address', host);
    },
    { allowedNetworks: [] },
  ),
);

send('what an operator allows is reached, by address and by name, and nothing beside it', () =>
  withEndpoint({}, (receiver) =>
    withSender(
      async (post) => {
        assert.is((await post(receiver.url)).status, 200);
        assert.is((await post(receiver.url.replace('127.0.0.1', 'localhost'))).status, 200);
        assert.is(
          (await post(`http://127.0.0.2:${receiver.port}`)).failure?.class,
          'refused_address',
        );
      },
      { allowedNetworks: ['127.0.0.1/32'] },
    ),
  ),
);

send('closing ends what is under way, and each request is answered', async () => {
  await withEndpoint({ answer: { hang: true } }, async (receiver) => {
    const sender = new RequestSender({
      allowedNetworks: LOOPBACK,
      maxResponseBytes: CAP,
      lookupsPerProject: 32,
    });
    const answers: RequestResult[] = [];
    for (let n = 0; n < 3; n++)
      sender.send(
        {
          projectId: 'p',
          url: receiver.url,
          headers: [],
          body: Buffer.from('{}'),
          timeoutMs: 60_000,
        },
        (answer) => answers.push(answer),
      );
    await receiver.received(3);
    await sender.close();
    await until('three answers', () => answers.length === 3);
    assert.ok(answers.every(({ status, failure }) => status === null && failure !== null));
  });
});

send.run();
