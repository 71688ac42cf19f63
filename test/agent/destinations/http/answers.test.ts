// Odd, truncated and invalid responses, as bytes. The status line decides: a request that an
// endpoint has accepted must not be sent again.
import { execFile } from 'node:child_process';
import net from 'node:net';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { RequestSender, type RequestResult } from '#agent/destinations/http/sender';
import { isPlainHead, mendedHead, readHead } from '#core/http/response-head';
import { loopback } from '../../../support/ports.js';

const answers = suite('agent/destinations/http/answers');

const OK = 'HTTP/1.1 200 OK\r\n';
const SIZED = 'content-length: 2\r\n\r\nok';
const CHUNKED = 'transfer-encoding: chunked\r\n';
const CHUNKS = '\r\n2\r\nok\r\n0\r\n\r\n';
const MANY = `x-a: ${'y'.repeat(1_000)}\r\n`;

/**
 * Bytes, status and body; a remark if a part is missing. The connection is closed afterwards,
 * unless `open`.
 */
type Row = readonly [
  bytes: string,
  status: number | null,
  body: string,
  remark?: RegExp | null,
  open?: 'open',
];

const CLOSED = /closed the connection in the middle of its answer\.$/;
const UNREADABLE = /cannot be read/;
const SILENT =
  /^The endpoint began to answer 200, and its response was not complete within 2000 ms\.$/;

const CORPUS: Readonly<Record<string, Row>> = {
  plain: [OK + SIZED, 200, 'ok', null, 'open'],
  'a 204 with a length and a body': [`HTTP/1.1 204 No Content\r\n${SIZED}`, 204, '', null, 'open'],
  'a 204 with chunks': [`HTTP/1.1 204 No Content\r\n${CHUNKED}${CHUNKS}`, 204, '', null, 'open'],
  'a 304 with a length': [
    'HTTP/1.1 304 Not Modified\r\ncontent-length: 2\r\n\r\n',
    304,
    '',
    null,
    'open',
  ],
  'a 205 with a body': [`HTTP/1.1 205 Reset Content\r\n${SIZED}`, 205, 'ok', null, 'open'],
  'a folded field': [`${OK}x-a: b\r\n \t c\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'a folded first field': [`${OK} x-a: b\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'a folded length': [`${OK}content-length:\r\n 2\r\n\r\nok`, 200, 'ok', null, 'open'],
  'bare line feeds': [(OK + SIZED).replaceAll('\r', ''), 200, 'ok', null, 'open'],
  'mixed line ends': [`${OK}x-a: b\n${SIZED}`, 200, 'ok', null, 'open'],
  'a carriage return in a value': [`${OK}x-a: b\rc\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'a length and chunks': [`${OK}content-length: 5\r\n${CHUNKED}${CHUNKS}`, 200, 'ok', null, 'open'],
  'the same length twice': [`${OK}content-length: 2\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'two lengths': [`${OK}content-length: 3\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'a list of lengths': [`${OK}content-length: 2, 2\r\n\r\nok`, 200, 'ok', null, 'open'],
  'a length that is no number': [`${OK}content-length: x\r\n\r\nok`, 200, '', null, 'open'],
  'a negative length': [`${OK}content-length: -2\r\n\r\nok`, 200, '', null, 'open'],
  'an empty length': [`${OK}content-length:\r\n\r\nok`, 200, '', null, 'open'],
  'a length with a sign': [`${OK}content-length: +2\r\n\r\nok`, 200, 'ok', null, 'open'],
  'a length beyond all numbers': [`${OK}content-length: ${'9'.repeat(30)}\r\n\r\nok`, 200, 'ok'],
  'chunks said twice': [`${OK}${CHUNKED}${CHUNKED}${CHUNKS}`, 200, 'ok', null, 'open'],
  'the coding identity': [`${OK}transfer-encoding: identity\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'an unknown transfer coding': [`${OK}transfer-encoding: other\r\n\r\nok`, 200, 'ok'],
  'chunks in HTTP/1.0': [`HTTP/1.0 200 OK\r\n${CHUNKED}${CHUNKS}`, 200, 'ok', null, 'open'],
  'a broken chunk': [`${OK}${CHUNKED}\r\nzz\r\nok\r\n0\r\n\r\n`, 200, '', UNREADABLE, 'open'],
  'chunks with bare line feeds': [`${OK}${CHUNKED}\r\n2\nok\n0\n\n`, 200, '', UNREADABLE, 'open'],
  trailers: [`${OK}${CHUNKED}\r\n2\r\nok\r\n0\r\nx: y\r\n\r\n`, 200, 'ok', null, 'open'],
  'folded trailers': [
    `${OK}${CHUNKED}\r\n2\r\nok\r\n0\r\nx: y\r\n z\r\n\r\n`,
    200,
    'ok',
    UNREADABLE,
    'open',
  ],
  'chunks without an end': [`${OK}${CHUNKED}\r\n2\r\nok`, 200, 'ok', CLOSED],
  'a body that is too short': [`${OK}content-length: 20\r\n\r\nok`, 200, 'ok', CLOSED],
  'nothing after the status line': [OK, 200, '', CLOSED],
  'an end within the fields': [`${OK}x-a: b\r\nx-b`, 200, '', CLOSED],
  'an end within the status line': ['HTTP/1.1 200', null, ''],
  'silence after the status line': [OK, 200, '', SILENT, 'open'],
  'silence within the body': [`${OK}content-length: 3\r\n\r\nok`, 200, 'ok', SILENT, 'open'],
  'a blank before the colon': [
    `${OK}x-a : b\r\ncontent-length : 2\r\n\r\nok`,
    200,
    'ok',
    null,
    'open',
  ],
  'a line without a colon': [`${OK}nonsense\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'a field without a name': [`${OK}: b\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'a name that is no token': [`${OK}x (a): b\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'a name beyond ASCII': [`${OK}x-é: b\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'a value beyond ASCII': [`${OK}x-a: é\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'control characters in a value': [`${OK}x-a: b\x01\x1bc\0d\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'no reason': [`HTTP/1.1 200\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'no reason after a blank': [`HTTP/1.1 200 \r\n${SIZED}`, 200, 'ok', null, 'open'],
  'a control character in the reason': [`HTTP/1.1 200 O\x01K\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'no blank before the reason': [`HTTP/1.1 200OK\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'two blanks before the status': [`HTTP/1.1  200 OK\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'HTTP/1.0 without a length': ['HTTP/1.0 200 OK\r\n\r\nok', 200, 'ok'],
  'no length, then the end': [`${OK}connection: close\r\n\r\nok`, 200, 'ok'],
  'the version 2': [`HTTP/2 200 OK\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'the version 2.0': [`HTTP/2.0 200 OK\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'the version 3': [`HTTP/3 200 OK\r\n${SIZED}`, null, '', null, 'open'],
  'a status of four digits': [`HTTP/1.1 2000 OK\r\n${SIZED}`, null, '', null, 'open'],
  'a status of two digits': [`HTTP/1.1 20 OK\r\n${SIZED}`, null, '', null, 'open'],
  'an empty line before the status line': [`\r\n${OK}${SIZED}`, 200, 'ok', null, 'open'],
  'HTTP/0.9': ['ok\n', null, '', null, 'open'],
  'folded fields of an informational answer': [
    `HTTP/1.1 103 Early\r\nx: a\r\n b\r\n\r\n${OK}${SIZED}`,
    200,
    'ok',
    null,
    'open',
  ],
  'an informational answer with bare line feeds': [
    `HTTP/1.1 100 Continue\n\n${OK}${SIZED}`,
    200,
    'ok',
    null,
    'open',
  ],
  'an unasked 101': [`HTTP/1.1 101 Switching\r\n\r\n${OK}${SIZED}`, 200, 'ok', null, 'open'],
  'a body that is not gzip': [`${OK}content-encoding: gzip\r\n${SIZED}`, 200, '', null, 'open'],
  'an unknown content coding': [
    `${OK}content-encoding: other\r\n${SIZED}`,
    200,
    '(2 bytes with content-encoding other)',
    null,
    'open',
  ],
  'a field of 90 KB': [`${OK}x-a: ${'y'.repeat(90_000)}\r\n${SIZED}`, 200, 'ok', null, 'open'],
  'fields of 290 KB': [OK + MANY.repeat(285) + SIZED, 200, 'ok', null, 'open'],
  'fields of 400 KB': [
    OK + MANY.repeat(400) + SIZED,
    200,
    '',
    /headers are larger than 300 KB/,
    'open',
  ],
  '3000 fields': [OK + 'x: y\r\n'.repeat(3_000) + SIZED, 200, 'ok', null, 'open'],
  'a 503 that is cut': ['HTTP/1.1 503 Busy\r\nretry-after: 7\r\n', 503, '', CLOSED],
};

interface Served {
  readonly url: string;
  readonly close: () => Promise<void>;
}

/**
 * Answers the first request of each connection, with the row numbered in its path; a second request
 * gets 500, because none may be sent on the connection.
 */
async function serve(
  rows: readonly Row[],
  write: (socket: net.Socket, bytes: Buffer) => void,
): Promise<Served> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    let isAnswered = false;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', (request) => {
      const [, number] = /^POST \/(\d+) /.exec(request.toString('latin1')) ?? [];
      if (number === undefined) return;
      if (isAnswered) return void socket.end('HTTP/1.1 500 Reused\r\ncontent-length: 0\r\n\r\n');
      isAnswered = true;
      const [bytes, , , , open] = rows[Number(number)]!;
      write(socket, Buffer.from(bytes, 'latin1'));
      if (!open) socket.end();
    });
  });
  const port = await loopback(server);
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => void server.close(() => resolve()));
    },
  };
}

async function withSender(
  test: (post: (url: string, timeoutMs?: number) => Promise<RequestResult>) => Promise<void>,
): Promise<void> {
  const sender = new RequestSender({
    allowedNetworks: ['127.0.0.0/8'],
    maxResponseBytes: 1_000,
    lookupsPerProject: 32,
  });
  const request = { projectId: 'p', headers: [], body: Buffer.from('{}') };
  try {
    await test(
      (url, timeoutMs = 10_000) =>
        new Promise((resolve) => sender.send({ ...request, url, timeoutMs }, resolve)),
    );
  } finally {
    await sender.close();
  }
}

const names = Object.keys(CORPUS);
const rows = Object.values(CORPUS);

const ways: Readonly<Record<string, (socket: net.Socket, bytes: Buffer) => void>> = {
  'in one piece': (socket, bytes) => socket.write(bytes),
  'in pieces of one byte': (socket, bytes) => {
    // Large responses are cut into larger pieces, for speed.
    const size = Math.ceil(bytes.length / 1_000);
    socket.setNoDelay(true);
    for (let at = 0; at < bytes.length; at += size) socket.write(bytes.subarray(at, at + size));
  },
};

for (const [how, write] of Object.entries(ways)) {
  answers(`the status decides, and what can be read of the rest is kept: ${how}`, async () => {
    const served = await serve(rows, write);
    await withSender(async (post) => {
      const got = await Promise.all(
        rows.map(([, , , remark], number) =>
          post(`${served.url}/${number}`, remark === SILENT ? 2_000 : undefined),
        ),
      );
      for (const [number, { status, body, failure, remark }] of got.entries()) {
        const [, expectedStatus, expectedBody, expectedRemark] = rows[number]!;
        assert.equal([status, body], [expectedStatus, expectedBody], names[number]);
        assert.is(
          failure === null,
          expectedStatus !== null,
          `${names[number]}: ${failure?.message}`,
        );
        if (expectedRemark) assert.match(remark ?? '', expectedRemark, names[number]);
        else if (expectedStatus !== null) assert.is(remark, undefined, names[number]);
      }
    });
    await served.close();
  });
}

answers('curl reads no status that is not read here', async () => {
  const served = await serve(rows, (socket, bytes) => socket.write(bytes));
  const args = rows.flatMap((_, number) => ['-o', '/dev/null', `${served.url}/${number}`]);
  const all = [
    '-s',
    '-Z',
    '--parallel-max',
    '100',
    '-m',
    '2',
    '-0',
    '-d',
    '{}',
    '-w',
    '%{url} %{http_code}\\n',
    ...args,
  ];
  const { stdout } = await promisify(execFile)('curl', all).catch(
    (error: { code?: unknown; stdout?: string }) => ({
      stdout: error.stdout ?? '',
    }),
  );
  await served.close();
  const read = [...stdout.matchAll(/\/(\d+) (\d+)$/gm)];
  assert.is(read.length, rows.length, 'curl is not there, or has not asked for all');
  for (const [, number, status] of read) {
    // curl prints 000 without a status, and accepts an unsolicited 101.
    if (status !== '000' && status !== '101')
      assert.is(rows[Number(number)]![1], Number(status), names[Number(number)]);
  }
});

answers(
  'a folded field is one value, and a connection is not used again after an answer that was mended',
  async () => {
    const served = await serve(rows, (socket, bytes) => socket.write(bytes));
    await withSender(async (post) => {
      const number = names.indexOf('a folded field');
      for (let n = 0; n < 3; n++) {
        const { status, headers } = await post(`${served.url}/${number}`);
        assert.equal([status, headers['x-a']], [200, 'b c']);
      }
    });
    await served.close();
  },
);

answers('bytes that come while a connection is idle are the answer to no request', async () => {
  let connections = 0;
  const server = net.createServer((socket) => {
    connections++;
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write(`${OK}${SIZED}HTTP/1.1 418 Stray\r\n${SIZED}`));
  });
  const url = `http://127.0.0.1:${await loopback(server)}/`;
  await withSender(async (post) => {
    for (let n = 0; n < 3; n++) assert.is((await post(url)).status, 200);
    assert.is(connections, 3);
  });
  server.close();
});

answers(
  'an answer counts that comes before the request is sent whole, though the connection is reset',
  async () => {
    const server = net.createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () =>
        socket.write(`HTTP/1.1 413 Too Large\r\n${SIZED}`, () => socket.resetAndDestroy()),
      );
    });
    const port = await loopback(server);
    const sender = new RequestSender({
      allowedNetworks: ['127.0.0.0/8'],
      maxResponseBytes: 1_000,
      lookupsPerProject: 32,
    });
    const request = {
      projectId: 'p',
      url: `http://127.0.0.1:${port}/`,
      headers: [],
      body: Buffer.alloc(5_000_000),
      timeoutMs: 5_000,
    };
    const { status, body } = await new Promise<RequestResult>((resolve) =>
      sender.send(request, resolve),
    );
    assert.equal([status, body], [413, 'ok']);
    await sender.close();
    server.close();
  },
);

answers('another protocol is named', async () => {
  const settings = '\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64';
  const kinds: Readonly<Record<string, readonly [bytes: string, sentence: RegExp]>> = {
    'HTTP/2': [
      settings,
      /^What 127\.0\.0\.1:\d+ answers cannot be read: it speaks HTTP\/2 only, and endpoints are called with HTTP\/1\.1\.$/,
    ],
    GOAWAY: ['\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01', /HTTP\/2 only/],
    TLS: [
      '\x15\x03\x01\0\x02\x02\x16',
      /: it speaks TLS, so its URL has to begin with https:\/\/\.$/,
    ],
    SSH: [
      'SSH-2.0-OpenSSH_9.2\r\n',
      /: it begins with "SSH-2\.0-OpenSSH_9\.2", which is not HTTP\/1\.1\.$/,
    ],
    'nothing known': ['\xff\xfe', /: it is not HTTP\/1\.1\.$/],
  };
  const all = Object.values(kinds);
  const served = await serve(
    all.map(([bytes]) => [bytes, null, '']),
    (socket, bytes) => socket.write(bytes),
  );
  await withSender(async (post) => {
    for (const [number, [, sentence]] of all.entries()) {
      const { status, failure } = await post(`${served.url}/${number}`);
      assert.equal([status, failure?.class], [null, 'protocol']);
      assert.match(failure?.message ?? '', sentence);
    }
  });
  await served.close();
});

answers('an answer that asks for TLS is named', async () => {
  const page = '<html><center>The plain HTTP request was sent to HTTPS port</center></html>';
  const served = await serve(
    [[`HTTP/1.1 400 Bad Request\r\n\r\n${page}`, 400, page]],
    (socket, bytes) => socket.write(bytes),
  );
  await withSender(async (post) => {
    assert.match(
      (await post(`${served.url}/0`)).remark ?? '',
      /^127\.0\.0\.1:\d+ speaks TLS, so its URL has to begin with https:\/\/\.$/,
    );
  });
  await served.close();
});

answers('no bytes break the reader of heads, and what it writes is plain and says the same', () => {
  const line = fc.oneof(
    fc.constantFrom('content-length: 2', 'transfer-encoding: chunked', ' folded', 'x-a: b', ''),
    fc.string({ unit: 'binary' }),
  );
  const bytes = fc.array(line).map((lines) => `HTTP/1.1 200 OK\r\n${lines.join('\r\n')}\r\n\r\n`);
  fc.assert(
    fc.property(fc.oneof(bytes, fc.string({ unit: 'binary' })), (text) => {
      const head = readHead(text);
      isPlainHead(Buffer.from(text, 'latin1'));
      if (!head) return;
      const mended = mendedHead(head);
      assert.ok(isPlainHead(mended), mended.toString());
      assert.is(readHead(mended.toString('latin1'))?.status, head.status);
    }),
  );
});

answers.run();
