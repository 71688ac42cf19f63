import type { PushContext, PushReceipt, PushRequest, PushSourcePlugin } from '@gateway/plugin';
import { check } from './check.js';
import { receiveCloudEvents } from './cloudevents.js';
import type { Connection } from './connection.js';
import { handshakeAnswer } from './handshakes.js';
import { headersOf, messageOf, queryObject } from './message.js';
import { providerOf } from './providers.js';
import { credentialOf, whyUnverified } from './verify.js';

export type { Connection } from './connection.js';

const plugin: PushSourcePlugin<Connection> = { check, open, verify, receive };

export default plugin;

function open({ headers }: PushRequest, { verifier }: Connection) {
  return {
    credential: credentialOf(verifier, headers),
    maxBytes: providerOf(verifier.type)?.max_bytes,
  };
}

function verify(request: PushRequest, { verifier }: Connection): string | undefined {
  return whyUnverified(verifier, request);
}

/** @throws PluginError for a handshake with a wrong token */
async function receive(
  request: PushRequest,
  connection: Connection,
  context: PushContext,
): Promise<PushReceipt> {
  const { verifier, custom_response: custom, forward_headers: forwarded } = connection;
  const handshake = handshakeAnswer(verifier, request);
  if (handshake) return { answer: handshake };
  const answer = custom ? { contentType: custom.content_type, body: custom.body } : undefined;
  if (connection.format === 'cloudevents') {
    const rest = { headers: headersOf(request, forwarded), query: queryObject(request) };
    const receipt = receiveCloudEvents(request, rest);
    return { ...receipt, answer: receipt.answer ?? answer };
  }
  if (request.method !== 'POST') return {};
  return { messages: [await messageOf(request, connection, context)], answer };
}
