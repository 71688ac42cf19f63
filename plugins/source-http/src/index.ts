import type { PushContext, PushReceipt, PushRequest, PushSourcePlugin } from '@gateway/plugin';
import { check } from './check.js';
import type { Connection } from './connection.js';
import { handshakeAnswer } from './handshakes.js';
import { messageOf } from './message.js';
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
  const { verifier, custom_response: custom } = connection;
  const handshake = handshakeAnswer(verifier, request);
  if (handshake) return { answer: handshake };
  if (request.method !== 'POST') return {};
  const answer = custom ? { contentType: custom.content_type, body: custom.body } : undefined;
  return { messages: [await messageOf(request, connection, context)], answer };
}
