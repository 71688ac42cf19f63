import fs from 'node:fs';
import https from 'node:https';
import type { TLSSocket } from 'node:tls';
import type { Authority } from './authority.js';
import { loopback } from './ports.js';

/** An endpoint that requires a client certificate of its authority. */
export interface MutualEndpoint {
  /** `https://localhost:port/hooks` */
  readonly url: string;
  /** The subject of the client's certificate and the number of the connection, per request. */
  readonly requests: readonly { readonly client: string; readonly connection: number }[];
  close(): Promise<void>;
}

/** Issues a certificate as PEM text. */
export function issued(
  trusted: Authority,
  name: string,
  options?: { expired?: boolean },
): { cert: string; key: string } {
  const { certificate, key } = trusted.issue(name, [], options);
  return { cert: fs.readFileSync(certificate, 'utf8'), key: fs.readFileSync(key, 'utf8') };
}

export async function mutualEndpoint(trusted: Authority, name = 'mutual'): Promise<MutualEndpoint> {
  const { certificate, key } = trusted.issue(name, ['DNS:localhost', 'IP:127.0.0.1']);
  const requests: { client: string; connection: number }[] = [];
  const connections = new WeakMap<object, number>();
  let opened = 0;
  const server = https.createServer(
    {
      cert: fs.readFileSync(certificate),
      key: fs.readFileSync(key),
      ca: fs.readFileSync(trusted.file),
      requestCert: true,
      rejectUnauthorized: true,
    },
    (request, response) => {
      const socket = request.socket as TLSSocket;
      const client = String(socket.getPeerCertificate().subject.CN);
      request.resume().on('end', () => {
        requests.push({ client, connection: connections.get(socket) ?? 0 });
        response.end('{}');
      });
    },
  );
  server.on('secureConnection', (socket) => connections.set(socket, ++opened));
  const port = await loopback(server);
  return {
    url: `https://localhost:${port}/hooks`,
    requests,
    close: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
}
