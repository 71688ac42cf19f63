import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { listen } from '#core/http/listen';

const listening = suite('core/http/listen');

const place = (bind: string, port = 0) => ({ bind, port, setting: 'port', flag: '--port' });
const answered = () => http.createServer((_request, response) => response.end('ok'));

listening('both families are answered on ::, one on the address of it', async () => {
  const server = answered();
  const { port, close } = await listen(server, place('::'), 0);
  try {
    for (const host of ['127.0.0.1', '[::1]'])
      assert.is(await (await fetch(`http://${host}:${port}/`)).text(), 'ok');
  } finally {
    await close();
  }
  const four = answered();
  const own = await listen(four, place('0.0.0.0'), 0);
  const refused = (await once(net.connect(own.port, '::1'), 'error')) as [NodeJS.ErrnoException];
  assert.is(refused[0].code, 'ECONNREFUSED');
  await own.close();
});

listening('where IPv6 is off, :: is IPv4', async () => {
  // The error of Linux with `ipv6.disable=1`, which only a boot can set.
  const server = answered();
  const listenAs = server.listen.bind(server);
  server.listen = ((options: net.ListenOptions) => {
    if (options.host !== '::') return listenAs(options);
    const error = new Error('listen EAFNOSUPPORT: address family not supported :::0');
    process.nextTick(() => server.emit('error', Object.assign(error, { code: 'EAFNOSUPPORT' })));
    return server;
  }) as typeof server.listen;
  const { port, close } = await listen(server, place('::'), 0);
  assert.is((server.address() as net.AddressInfo).address, '0.0.0.0');
  assert.is(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'ok');
  await close();
});

listening('a connection stays open for longer than a load balancer keeps it', async () => {
  const server = answered();
  const { port, close } = await listen(server, place('127.0.0.1'), 0);
  const socket = net.connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    const ask = async () => {
      socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
      return String(((await once(socket, 'data')) as [Buffer])[0]);
    };
    const [, seconds] = /keep-alive: timeout=(\d+)/i.exec(await ask()) ?? [];
    assert.ok(Number(seconds) >= 65);
    // Longer than Node's default of 5 s, and than the timeout for the headers of a request.
    await sleep(12_000);
    assert.match(await ask(), /^HTTP\/1.1 200/);
  } finally {
    socket.destroy();
    await close();
  }
});

listening.run();
