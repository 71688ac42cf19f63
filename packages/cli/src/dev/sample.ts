import { setTimeout as sleep } from 'node:timers/promises';
import { sentenceOf } from '@gateway/agent/model';
import { clampTime, eventId } from '@gateway/core/events';
import type { AttemptView, DeliveryView, EventView, QuarantinedView } from './api.js';
import { DevError } from './error.js';
import type { Receipt } from './services/inbox.js';
import type { Instance } from './instance.js';
import type { Outcome } from './message-watch.js';
import { excerpt, paint } from '../output/paint.js';
import { QUEUE_NAME } from './services/queue.js';

/** A message of a shop, in a format of its own. */
export function sampleMessage(number: string): string {
  return JSON.stringify({ kind: 'order.created', shop: 'berlin', order: { number, total: '19.90', currency: 'EUR' } });
}

const DEADLINE_MS = 30_000;
const POLL_MS = 10;
const FRESH = 'or start with --fresh';

/**
 * Sends one message to the queue, follows it to the inbox, and prints each step with its time since the message was sent.
 *
 * @returns the request that the inbox has verified
 * @throws DevError with the step that failed and the reason
 */
export async function followSample(body: string, instance: Instance, print: (line: string) => void): Promise<Receipt> {
  const { queue, api, setup, inbox, watch } = instance;
  const project = `/projects/${setup.projectId}`;
  const sentAt = Date.now();
  const step = (atMs: number, name: string, text: string) =>
    print(`  ${`${atMs - sentAt} ms`.padStart(9)}  ${paint('bold', name.padEnd(9))}  ${text}`);
  /** Resolves as the promise does, unless the deadline passes first. */
  const within = async <T>(promise: Promise<T>, expected: string): Promise<T> => {
    const stop = new AbortController();
    const late = sleep(sentAt + DEADLINE_MS - Date.now(), undefined, stop).then(() => notInTime(expected, instance));
    late.catch(() => undefined);
    return Promise.race([promise, late]).finally(() => stop.abort());
  };
  /** Repeats a request until its answer is as wanted. */
  const poll = async <T>(ask: () => Promise<T>, isWanted: (answer: T) => boolean, expected: string): Promise<T> => {
    for (;;) {
      const answer = await ask();
      if (isWanted(answer)) return answer;
      if (Date.now() > sentAt + DEADLINE_MS) await notInTime(expected, instance);
      await sleep(POLL_MS);
    }
  };

  const watched = watch.expect(body);
  await queue.send(body);
  step(sentAt, 'sent', `to the queue ${QUEUE_NAME}: ${excerpt(body, 100)}`);

  const { atMs: readAt, message } = await within(watched.read, 'read from the queue');
  step(readAt, 'read', `by the agent from queue ${QUEUE_NAME}`);

  const { atMs: settledAt, outcome } = await within(watched.settled, 'accepted');
  const id = eventId(setup.sourceId, message.coordinates, clampTime(message.timestamp));
  if (outcome !== 'accepted') throw await notAccepted(outcome, () => api.call<QuarantinedView>('GET', `${project}/quarantine/${id}`));
  const event = await poll(
    () => api.call<EventView>('GET', `${project}/events/${id}`),
    ({ status }) => status !== 'pending',
    'routed',
  );
  const how = setup.isTransformed ? 'transformed into' : 'as';
  step(settledAt, 'accepted', `${how} ${event.event_type}, committed as event ${event.uid}, and only then acknowledged to the queue`);

  const deliveries = () => api.list<DeliveryView>(`${project}/eventdeliveries?eventId=${event.uid}`);
  const delivery = toInbox(await deliveries(), event, setup.endpointId);
  step(Math.max(settledAt, Date.parse(delivery.created_at)), 'routed', `to the endpoint ${delivery.endpoint_metadata.name}`);

  const attempts = await poll(
    async () => {
      const { status } = toInbox(await deliveries(), event, setup.endpointId).endpoint_metadata;
      if (status !== 'active')
        throw new DevError(`the delivery of the sample is held: the endpoint Inbox is ${status}`, `activate it, ${FRESH}`);
      return api.list<AttemptView>(`${project}/eventdeliveries/${delivery.uid}/deliveryattempts`);
    },
    (found) => found.length > 0,
    'delivered',
  );
  const attempt = attempts.at(-1)!;
  const { url } = delivery.endpoint_metadata;
  if (!attempt.status) throw notDelivered(attempt);
  if (!url?.startsWith(inbox.url)) {
    const answer = `the sample was delivered to ${url}, which answered ${attempt.http_status}`;
    throw new DevError(`${answer}: the endpoint Inbox has that URL now`, `give the endpoint the URL ${inbox.url}/ again, ${FRESH}`);
  }
  const receipt = await within(inbox.receiptOf(delivery.uid), 'received by the inbox');
  const answeredAt = Date.parse(attempt.requested_at) + attempt.duration_ms;
  const answer = `answered ${attempt.http_status} in ${attempt.duration_ms} ms, attempt ${attempt.number}`;
  step(answeredAt, 'delivered', `POST ${url} ${answer}`);
  step(
    Math.max(answeredAt, Date.parse(receipt.received_at)),
    'verified',
    'by the inbox before it answered: the Standard Webhooks signature is right',
  );
  return receipt;
}

async function notAccepted(outcome: Exclude<Outcome, 'accepted'>, quarantined: () => Promise<QuarantinedView>): Promise<DevError> {
  const fix = `change the function of the source, ${FRESH}`;
  switch (outcome) {
    case 'quarantined': {
      const { code, reason } = await quarantined();
      return new DevError(`the sample was quarantined (${code}): ${reason}`, fix);
    }
    case 'dropped':
      return new DevError('the function of the source dropped the sample: it returned null', fix);
    case 'duplicate':
      return new DevError('the sample created no event: its idempotency key was used before', fix);
    case 'later':
      return new DevError('the sample was returned to the queue: the agent is stopping', 'start again');
  }
}

function toInbox(deliveries: readonly DeliveryView[], event: EventView, endpointId: string): DeliveryView {
  const found = deliveries.find(({ endpoint_id: endpoint }) => endpoint === endpointId);
  if (found) return found;
  const others = deliveries.map(({ endpoint_metadata: { name } }) => name).join(', ');
  const why = others ? `it went to ${others}` : sentenceOf(String(event.outcome));
  throw new DevError(`the sample was not routed to the inbox: ${why}`, `subscribe the endpoint Inbox to ${event.event_type}, ${FRESH}`);
}

function notDelivered({ http_status: status, error, response_body: body, number }: AttemptView): DevError {
  const reason = status === null ? String(error) : `the inbox answered ${status}${body ? `: ${excerpt(body, 200)}` : ''}`;
  return new DevError(
    `the sample was not delivered by attempt ${number}: ${reason.trim()}`,
    `check that the endpoint Inbox has its URL, and that endpoint_secret in .gateway/dev.json is its secret, ${FRESH}`,
  );
}

async function notInTime(expected: string, { health }: Instance): Promise<never> {
  const problems = (await health()).flatMap(({ name, state, reason }) => (state === 'ok' ? [] : [`${name}: ${reason ?? state}`]));
  const why = problems.length > 0 ? `: ${problems.join('; ')}` : '';
  throw new DevError(`the sample was not ${expected} within ${DEADLINE_MS / 1000} seconds${why}`, `read .gateway/dev.log, ${FRESH}`);
}
