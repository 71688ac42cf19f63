import {
  PluginError,
  type PushedMessage,
  type PushReceipt,
  type PushRequest,
} from '@gateway/plugin';
import { readCloudEvents } from '@gateway/plugin/cloudevents';

/** As core takes of one request. */
const BATCH_MAX = 1_000;
const ORIGIN = /^[\w.*-]{1,253}(:\d{1,5})?$/;
const NOTHING = { status: true, message: 'the batch is empty' };

/**
 * Takes CloudEvents, and allows the origin that asks to send them:
 * https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md
 *
 * @param rest the parts of each message that do not depend on the body
 * @throws PluginError that names the attribute
 */
export function receiveCloudEvents(
  { method, headers, body }: PushRequest,
  rest: Omit<PushedMessage, 'body'>,
): PushReceipt {
  if (method === 'OPTIONS') {
    const origin = headers['webhook-request-origin'];
    if (typeof origin !== 'string' || !ORIGIN.test(origin)) return {};
    const allowed = { 'webhook-allowed-origin': origin, 'webhook-allowed-rate': '*' };
    return { answer: { contentType: 'text/plain', body: '', headers: allowed } };
  }
  if (method !== 'POST') return {};
  const given = events(headers, body);
  const texts = typeof given === 'string' ? [given] : given;
  if (texts.length > BATCH_MAX)
    throw new PluginError(`the batch has ${texts.length} CloudEvents`, {
      status: 400,
      fix: `Send batches of at most ${BATCH_MAX}.`,
    });
  if (texts.length === 0)
    return { answer: { contentType: 'application/json', body: JSON.stringify(NOTHING) } };
  return { messages: texts.map((text) => ({ ...rest, body: Buffer.from(text) })) };
}

function events(given: PushRequest['headers'], bytes: Uint8Array) {
  const headers: Record<string, string> = {};
  for (const name in given) if (typeof given[name] === 'string') headers[name] = given[name];
  try {
    return readCloudEvents({ bytes, headers, isHttp: true });
  } catch (cause) {
    const { message, fix } = cause as PluginError;
    throw new PluginError(message, { status: 400, fix, cause });
  }
}
