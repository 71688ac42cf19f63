import type { DeliveryAttempt, EventDelivery, SentEvent } from '@gateway/client';
import { shellQuoted } from '../event-types/event-command.js';

/** Without authentication, which is not stored. */
export function requestHeaders(
  { uid, occurred_at: occurredAt }: EventDelivery,
  { headers, data_bytes: length }: SentEvent,
  attempt: DeliveryAttempt | undefined,
): Readonly<Record<string, string>> {
  const at = new Date(attempt?.requested_at ?? occurredAt);
  return {
    'content-type': 'application/json',
    ...headers,
    'content-length': String(length),
    'webhook-id': uid,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': '(computed from the secrets, not stored)',
  };
}

/** Sends the request, unsigned. */
export function requestCommand(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): string {
  const sent = Object.entries(headers)
    .filter(([name]) => name !== 'content-length' && name !== 'webhook-signature')
    .map(([name, value]) => `  -H ${shellQuoted(`${name}: ${value}`)} \\\n`);
  return `curl ${shellQuoted(url)} \\\n${sent.join('')}  -d ${shellQuoted(body)}`;
}
