// The servers of `hostile-endpoints.ts`, in a separate process: their cost must not distort
// measurements. Arguments: PEM files of an expired certificate and its key. Sends its ports to the
// parent, and answers any message with its counts.
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net, { type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { loopback } from './ports.js';

export type Ports = Readonly<
  Record<
    'hangs' | 'trickles' | 'resets' | 'gigabyte' | 'bomb' | 'redirects' | 'changing' | 'expired',
    number
  >
>;

export interface Counted {
  readonly open: Readonly<Record<number, number>>;
  /** Connections to 127.0.0.2, which must remain 0. */
  readonly trapped: number;
}

export const REDIRECT = 'http://169.254.169.254/latest/meta-data/iam/security-credentials/';
const GIGABYTE = 1_000_000_000;
const TRICKLE_MS = 1_000;

const open: Record<number, number> = {};
let trapped = 0;

async function listen(server: net.Server): Promise<number> {
  const port = await loopback(server);
  open[port] = 0;
  server.on('connection', (socket: Socket) => {
    open[port]!++;
    socket.on('error', () => undefined).once('close', () => open[port]!--);
  });
  return port;
}

function answering(answer: (response: http.ServerResponse) => void): Promise<number> {
  return listen(
    http.createServer(
      (request, response) => void request.resume().once('end', () => answer(response)),
    ),
  );
}

function trickle(response: http.ServerResponse): void {
  response.writeHead(200).write('x');
  const timer = setInterval(() => response.write('x'), TRICKLE_MS);
  response.once('close', () => clearInterval(timer));
}

const piece = Buffer.alloc(65_536, 'x');

function pourGigabyte(response: http.ServerResponse): void {
  response.writeHead(200, { 'content-length': GIGABYTE });
  let left = GIGABYTE;
  const pour = () => {
    while (left > 0 && !response.destroyed) {
      const part = piece.subarray(0, left);
      left -= part.length;
      if (!response.write(part)) return;
    }
    response.end();
  };
  response.on('drain', pour);
  pour();
}

// Concatenated gzip files are one valid file: ten times 100 MB.
const bomb = () =>
  Buffer.concat(
    Array.from<Buffer>({ length: 10 }).fill(gzipSync(Buffer.alloc(GIGABYTE / 10, 'x'))),
  );

/**
 * Listens next to the port of the changing name. Without a second loopback address, no connection
 * can be trapped.
 */
async function trap(port: number): Promise<void> {
  const server = net.createServer((socket) => {
    trapped++;
    socket.destroy();
  });
  server.listen(port, '127.0.0.2');
  await once(server, 'listening').catch(() => undefined);
}

if (process.send) {
  const [certificate = '', key = ''] = process.argv.slice(2);
  const packed = bomb();
  const changing = await answering((response) =>
    response.writeHead(200, { connection: 'close' }).end(),
  );
  await trap(changing);
  const ports: Ports = {
    hangs: await answering(() => undefined),
    trickles: await answering(trickle),
    resets: await listen(
      net.createServer((socket) => socket.once('data', () => socket.resetAndDestroy())),
    ),
    gigabyte: await answering(pourGigabyte),
    bomb: await answering((response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(packed),
    ),
    redirects: await answering((response) => response.writeHead(302, { location: REDIRECT }).end()),
    changing,
    expired: await listen(
      https.createServer({ cert: fs.readFileSync(certificate), key: fs.readFileSync(key) }),
    ),
  };
  process.on('message', () => process.send?.({ open, trapped } satisfies Counted));
  process.on('disconnect', () => process.exit(0));
  process.send(ports);
}
