import { setTimeout as sleep } from 'node:timers/promises';
import { sentenceOf } from '@gateway/agent/model';
import { clampTime, eventId } from '@gateway/core/events';
import type { Inbox } from './inbox.js';
import type { AttemptView, DeliveryView, EventView, Logs } from './log-views.js';
import type { Outcome } from './observe.js';
import { excerpt, paint } from '../output/paint.js';
import { Problem } from './problem.js';
import type { Queue } from './queue.js';
import type { Receipt } from './receipt.js';
import { QUEUE_NAME } from './sample.js';
import type { Setup } from './setup.js';
import { by, type Sightings } from './sightings.js';

export interface SampleParts {
  readonly queue: Queue;
  readonly sightings: Sightings;
  readonly logs: Logs;
  readonly setup: Setup;
  readonly inbox: Inbox;
  /** What is not well in the agent, for a person; empty when all is. */
  readonly complaints: () => Promise<string>;
  readonly print: (line: string) => void;
}

const DEADLINE_MS = 30_000;
const LOOK_MS = 10;
const FRESH = 'or start anew with --fresh';

/**
 * Sends one message to the queue and follows it to the inbox, printing each step with its time since the message was sent.
 *
 * @returns the request that the inbox got and verified
 * @throws Problem that names the step which did not happen, and why
 */
export async function followSample(body: string, parts: SampleParts): Promise<Receipt> {
  const { queue, sightings, setup, print } = parts;
  const sentAt = Date.now();
  const deadline = sentAt + DEADLINE_MS;
  const step = (at: number, name: string, text: string) =>
    print(`  ${`${at - sentAt} ms`.padStart(9)}  ${paint('bold', name.padEnd(9))}  ${text}`);

  const sighting = sightings.expect(body);
  await queue.send(body);
  step(sentAt, 'sent', `to the queue ${QUEUE_NAME}: ${excerpt(body, 100)}`);

  const { at: readAt, message, source } = await by(deadline, sighting.read, () => notYet('read from the queue', parts));
  step(readAt, 'read', `by the agent from ${source}`);

  const { at: settledAt, outcome } = await by(deadline, sighting.settled, () => notYet('accepted', parts));
  const id = eventId(setup.sourceId, message.coordinates, clampTime(message.timestamp));
  if (outcome !== 'accepted') throw await unaccepted(outcome, id, parts);
  const event = await look(
    deadline,
    () => parts.logs.event(id),
    ({ status }) => status !== 'pending',
    () => notYet('routed', parts),
  );
  const how = setup.isTransformed ? 'transformed into' : 'as';
  step(settledAt, 'accepted', `${how} ${event.event_type}, committed as event ${event.uid}, and only then acknowledged to the queue`);

  const delivery = await routed(event, parts);
  step(Math.max(settledAt, Date.parse(delivery.created_at)), 'routed', `to the endpoint ${delivery.endpoint_metadata.name}`);

  const attempt = await attempted(deadline, delivery, parts);
  const { number, http_status: status, duration_ms: duration } = attempt;
  if (!attempt.status) throw undelivered(attempt);
  if (!delivery.endpoint_metadata.url?.startsWith(parts.inbox.url)) throw elsewhere(delivery, attempt);
  const receipt = await by(deadline, parts.inbox.receiptOf(delivery.uid), () => notYet('seen by the inbox', parts));
  const answeredAt = Date.parse(attempt.requested_at) + duration;
  step(answeredAt, 'delivered', `POST ${delivery.endpoint_metadata.url} answered ${status} in ${duration} ms, attempt ${number}`);
  // What the inbox found, not what its answer says.
  if (receipt.problem !== undefined)
    throw new Problem(`the request cannot be verified: ${receipt.problem}`, { fix: 'report this: it is a fault of the gateway' });
  step(Math.max(answeredAt, receipt.receivedAt), 'verified', 'by the inbox before it answered: the Standard Webhooks signature is right');
  return receipt;
}

async function unaccepted(outcome: Exclude<Outcome, 'accepted'>, id: string, { logs }: SampleParts): Promise<Problem> {
  switch (outcome) {
    case 'quarantined': {
      const { code, reason } = await logs.quarantinedMessage(id);
      return new Problem(`the sample was quarantined (${code}): ${reason}`, { fix: `change the function of the source, ${FRESH}` });
    }
    case 'dropped':
      return new Problem('the function of the source dropped the sample: it returned null', { fix: `change the function, ${FRESH}` });
    case 'duplicate':
      return new Problem('the sample made no event: its idempotency key was used before', {
        fix: `change the function of the source, ${FRESH}`,
      });
    case 'later':
      return new Problem('the sample was given back to the queue: the agent is stopping', { fix: 'start again' });
  }
}

async function routed(event: EventView, { logs, setup }: SampleParts): Promise<DeliveryView> {
  const deliveries = await logs.deliveriesOf(event.uid);
  const toInbox = deliveries.find(({ endpoint_id: endpoint }) => endpoint === setup.endpointId);
  if (toInbox) return toInbox;
  const others = deliveries.map(({ endpoint_metadata: { name } }) => name).join(', ');
  const why = others ? `it went to ${others}` : sentenceOf(String(event.outcome));
  throw new Problem(`the sample was not routed to the inbox: ${why}`, {
    fix: `subscribe the endpoint Inbox to ${event.event_type}, ${FRESH}`,
  });
}

async function attempted(deadline: number, { uid, event_id: eventId }: DeliveryView, parts: SampleParts): Promise<AttemptView> {
  let delivery: DeliveryView | undefined;
  const attempts = await look(
    deadline,
    async () => {
      delivery = (await parts.logs.deliveriesOf(eventId)).find((it) => it.uid === uid);
      const { status } = delivery?.endpoint_metadata ?? {};
      if (status !== 'active')
        throw new Problem(`the delivery of the sample is held: the endpoint Inbox is ${status}`, { fix: `activate it, ${FRESH}` });
      return parts.logs.attemptsOf(uid);
    },
    (found) => found.length > 0,
    () => notYet(`delivered (it is ${delivery?.status})`, parts),
  );
  return attempts.at(-1)!;
}

function undelivered({ http_status: status, error, response_body: answer, number }: AttemptView): Problem {
  const reason = status === null ? String(error) : `the inbox answered ${status}${answer ? `: ${excerpt(answer, 200)}` : ''}`;
  return new Problem(`the sample was not delivered by attempt ${number}: ${reason.trim()}`, {
    fix: `see that the endpoint Inbox has its URL, and that endpoint_secret in .gateway/dev.json is its secret, ${FRESH}`,
  });
}

function elsewhere({ endpoint_metadata: { url } }: DeliveryView, { http_status: status }: AttemptView): Problem {
  return new Problem(
    `the sample was delivered to ${url}, which answered ${status}: the endpoint Inbox has that URL now, so the inbox saw nothing`,
    {
      fix: `give the endpoint the URL of the inbox again, ${FRESH}`,
    },
  );
}

async function notYet(step: string, { complaints }: SampleParts): Promise<Problem> {
  const why = await complaints();
  return new Problem(`the sample was not ${step} within ${DEADLINE_MS / 1000} seconds${why ? `: ${why}` : ''}`, {
    fix: why ? 'see to what it names, then start again' : 'read .gateway/dev.log, or start anew with --fresh',
  });
}

/** Asks again until it is as wanted. */
async function look<T>(deadline: number, ask: () => Promise<T>, isWanted: (it: T) => boolean, late: () => Promise<Problem>): Promise<T> {
  for (;;) {
    const found = await ask();
    if (isWanted(found)) return found;
    if (Date.now() > deadline) throw await late();
    await sleep(LOOK_MS);
  }
}
