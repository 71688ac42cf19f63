import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { inboxPage } from './inbox-page.js';
import { PROOF_PATH } from './lock.js';
import { LOOPBACK } from './ports.js';
import { receiptView, type Receipt } from './receipt.js';
import { signatureProblem } from './standard-webhooks.js';

export interface Inbox {
  readonly url: string;
  /** Is told of every request from now on. */
  onReceipt(listener: (receipt: Receipt) => void): void;
  /** Resolves with the request that carries this event delivery, which may have come already. */
  receiptOf(deliveryId: string): Promise<Receipt>;
  /** The secret of the endpoint that the inbox stands for. */
  setSecret(secret: string): void;
  close(): Promise<void>;
}

const KEPT = 100;
const BODY_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Starts a receiver of webhooks on loopback. It verifies the signature of each POST and answers 200, or 401 with the reason; `GET /` shows the last
 * hundred, as a page or (for other clients than browsers) as JSON.
 *
 * @param token what it answers with to prove which process it is, see `claim`
 */
export async function startInbox({ port, token }: { port: number; token: string }): Promise<Inbox> {
  const receipts: Receipt[] = [];
  const listeners: ((receipt: Receipt) => unknown)[] = [];
  let secret = '';

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'GET' && request.method !== 'HEAD') return receive(request, response);
    if (request.url === PROOF_PATH) return send(response, 200, 'text/plain', token);
    const isBrowser = request.headers.accept?.includes('text/html') ?? false;
    if (isBrowser) send(response, 200, 'text/html; charset=utf-8', inboxPage(receipts));
    else send(response, 200, 'application/json', `${JSON.stringify(receipts.map(receiptView), null, 2)}\n`);
  }
  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    if (body === undefined) return send(response, 413, 'text/plain', 'the inbox takes 4 MB at most\n');
    const { 'webhook-id': id } = request.headers;
    const receipt: Receipt = {
      receivedAt: Date.now(),
      requestLine: `${request.method} ${request.url} HTTP/${request.httpVersion}`,
      rawHeaders: request.rawHeaders,
      id: typeof id === 'string' ? id : '',
      body: body.toString(),
      problem: signatureProblem(request.headers, body, secret),
    };
    receipts.unshift(receipt);
    receipts.length = Math.min(receipts.length, KEPT);
    if (receipt.problem === undefined) send(response, 200, 'text/plain', 'verified\n');
    else send(response, 401, 'text/plain', `the signature cannot be verified: ${receipt.problem}\n`);
    for (const listener of listeners) listener(receipt);
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, LOOPBACK, resolve);
  });
  return {
    url: `http://${LOOPBACK}:${port}`,
    onReceipt: (listener) => void listeners.push(listener),
    receiptOf: (deliveryId) =>
      new Promise((resolve) => {
        const there = receipts.find(({ id }) => id === deliveryId);
        if (there) resolve(there);
        else listeners.push((receipt) => receipt.id === deliveryId && resolve(receipt));
      }),
    setSecret: (it) => void (secret = it),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Undefined when it is too large. */
async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function send(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body);
}
