import http from 'node:http';
import net from 'node:net';
import { loopback } from './ports.js';

/** An HTTP proxy on 127.0.0.1. */
export interface HttpProxy {
  readonly port: number;
  readonly url: string;
  /** The request lines: `CONNECT localhost:443`, `POST http://localhost/path`. */
  readonly asked: readonly string[];
  /** Header fields of the last plain request. */
  readonly headers: http.IncomingHttpHeaders;
  /** The number of accepted connections. */
  readonly connections: number;
  close(): Promise<void>;
}

/**
 * @param options.login the required `user:password`
 * @param options.refuses answers every CONNECT with this status
 * @param options.resolves addresses for names
 */
export async function httpProxy(
  options: { login?: string; refuses?: number; resolves?: Readonly<Record<string, string>> } = {},
): Promise<HttpProxy> {
  const asked: string[] = [];
  const sockets = new Set<net.Socket>();
  let headers: http.IncomingHttpHeaders = {};
  let connections = 0;
  const wanted = options.login && `Basic ${Buffer.from(options.login).toString('base64')}`;
  const mayPass = (request: http.IncomingMessage) =>
    !wanted || request.headers['proxy-authorization'] === wanted;
  const addressOf = (name: string) => options.resolves?.[name] ?? name;
  const watch = (socket: net.Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
  };

  const server = http.createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    headers = request.headers;
    if (!mayPass(request))
      return void response.writeHead(407, { 'proxy-authenticate': 'Basic' }).end('log in');
    const target = new URL(request.url!);
    const { 'proxy-authorization': _, ...passed } = request.headers;
    // No agent, which could use the proxy of this process.
    const createConnection = () =>
      net.connect({ host: addressOf(target.hostname), port: Number(target.port) });
    const onward = http.request(
      {
        createConnection,
        path: target.pathname + target.search,
        method: request.method,
        headers: passed,
      },
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      },
    );
    onward.on('error', () => response.writeHead(502).end('bad gateway'));
    request.pipe(onward);
  });
  server.on('connection', (socket) => {
    connections++;
    watch(socket);
  });
  server.on('connect', (request, client: net.Socket) => {
    asked.push(`CONNECT ${request.url}`);
    const refusal = mayPass(request) ? options.refuses : 407;
    if (refusal)
      return void client.end(
        `HTTP/1.1 ${refusal} ${http.STATUS_CODES[refusal]}\r\ncontent-length: 0\r\n\r\n`,
      );
    const [host = '', port = ''] = request.url!.split(':');
    const upstream = net.connect({ host: addressOf(host), port: Number(port) });
    watch(upstream);
    let open = false;
    upstream.once('connect', () => {
      open = true;
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.pipe(upstream).pipe(client);
    });
    upstream.once('error', () =>
      open ? client.destroy() : client.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'),
    );
  });
  const port = await loopback(server);
  return {
    port,
    url: `http://${options.login ? `${options.login.split(':').map(encodeURIComponent).join(':')}@` : ''}127.0.0.1:${port}`,
    asked,
    get headers() {
      return headers;
    },
    get connections() {
      return connections;
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
