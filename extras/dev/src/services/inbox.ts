import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { KEEP_ALIVE_MS } from '@gateway/core/http';
import { LOOPBACK } from './ports.js';

export interface Receipt {
  readonly received_at: string;
  /** The request line, such as `POST /path HTTP/1.1`. */
  readonly request: string;
  readonly verified: boolean;
  readonly problem: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Inbox {
  readonly url: string;
  /** The last hundred requests, newest first. */
  readonly receipts: readonly Receipt[];
  setSecret(secret: string): void;
  close(): Promise<void>;
}

const KEPT = 100;
const TOLERANCE_SECONDS = 300;

/**
 * Starts a webhook receiver on loopback. It responds to a POST with 200, or with 401 and the reason
 * if the signature cannot be verified. `GET /` lists the last hundred requests as JSON or, in a
 * browser, as a page that refreshes itself.
 */
export async function startInbox(port: number): Promise<Inbox> {
  const receipts: Receipt[] = [];
  let secret = '';

  const server = createServer((request, response) => {
    if (request.method === 'GET') list(request, response);
    else receive(request, response).catch(() => response.destroy());
  });
  function list(request: IncomingMessage, response: ServerResponse): void {
    const json = JSON.stringify(receipts, null, 2);
    const isBrowser = request.headers.accept?.includes('text/html');
    response
      .setHeader('content-type', isBrowser ? 'text/html; charset=utf-8' : 'application/json')
      .end(isBrowser ? page(json) : `${json}\n`);
  }
  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    );
    const problem = problemOf(headers, body, secret);
    receipts.unshift({
      received_at: new Date().toISOString(),
      request: `${request.method} ${request.url} HTTP/${request.httpVersion}`,
      verified: problem === null,
      problem,
      headers,
      body: body.toString(),
    });
    receipts.length = Math.min(receipts.length, KEPT);
    response.writeHead(problem === null ? 200 : 401, { 'content-type': 'text/plain' });
    response.end(
      problem === null ? 'verified\n' : `the signature cannot be verified: ${problem}\n`,
    );
  }

  server.keepAliveTimeout = KEEP_ALIVE_MS;
  await once(server.listen(port, LOOPBACK), 'listening');
  return {
    url: `http://${LOOPBACK}:${port}`,
    receipts,
    setSecret: (value) => void (secret = value),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** As Standard Webhooks says, independently of the code that signs. */
function problemOf(headers: Receipt['headers'], body: Buffer, secret: string): string | null {
  const {
    'webhook-id': id = '',
    'webhook-timestamp': timestamp = '',
    'webhook-signature': signatures = '',
  } = headers;
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const hmac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body);
  if (!signatures.split(' ').includes(`v1,${hmac.digest('base64')}`))
    return 'it was made with another secret, or for another id, timestamp or body';
  return Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_SECONDS
    ? `its timestamp is more than ${TOLERANCE_SECONDS} seconds off`
    : null;
}

function page(json: string): string {
  const text = json.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="3"><title>Inbox</title><pre>${text}</pre>\n`;
}
