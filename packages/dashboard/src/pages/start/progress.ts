import type { DeliveryAttempt, Endpoint, Event, EventDelivery } from '@gateway/client';
import { api, type ReadOptions } from '../../api/index.js';
import { capital } from '../../format/text.js';

export interface Progress {
  readonly endpoint: Endpoint | undefined;
  readonly event: Event | undefined;
  /** A successful delivery of the event, otherwise its newest one. */
  readonly delivery: EventDelivery | undefined;
  /** The newest attempt of an unsuccessful delivery. */
  readonly attempt: DeliveryAttempt | undefined;
  readonly quarantinedCount: number;
}

export async function readProgress(options: ReadOptions): Promise<Progress> {
  const one = { perPage: 1 };
  const [endpoints, events, summary] = await Promise.all([
    api().endpoints.list(one, options).page(),
    api().events.list(one, options).page(),
    api().summary.get(options),
  ]);
  const [event] = events.content;
  const deliveries = event
    ? (await api().eventDeliveries.list({ eventId: event.uid }, options).page()).content
    : [];
  const delivery = deliveries.find(({ status }) => status === 'success') ?? deliveries[0];
  const isTried = delivery && delivery.status !== 'success' && delivery.attempts > 0;
  const attempts = isTried
    ? (await api().eventDeliveries.listDeliveryAttempts(delivery.uid, options)).content
    : [];
  return {
    endpoint: endpoints.content[0],
    event,
    delivery,
    attempt: attempts[0],
    quarantinedCount: summary.quarantined_messages,
  };
}

export interface Check {
  readonly state: 'ok' | 'waiting' | 'bad';
  readonly sentence: string;
  /** The path of a page with details, relative to the project. */
  readonly to?: string;
  readonly action?: string;
}

/** An event pending for longer than this means that no agent is running. */
const AGENT_MS = 10_000;

/** Two sentences: whether a message has arrived, and whether it was delivered. */
export function checksOf(
  { event, delivery, attempt, quarantinedCount }: Progress,
  nowMs = Date.now(),
): readonly Check[] {
  if (!event) {
    const refused: Check = {
      state: 'bad',
      sentence: 'A message arrived, but it was quarantined.',
      to: '/quarantine',
      action: 'See why',
    };
    return [
      quarantinedCount > 0
        ? refused
        : { state: 'waiting', sentence: 'Waiting for a message. This page updates automatically.' },
      { state: 'waiting', sentence: 'Waiting for a delivery.' },
    ];
  }
  const to = `/events/${event.uid}`;
  const arrived: Check = {
    state: 'ok',
    sentence: `${event.event_type} arrived.`,
    to,
    action: 'View event',
  };
  return [arrived, deliveryCheck(event, { delivery, attempt }, nowMs)];
}

function deliveryCheck(
  event: Event,
  { delivery, attempt }: Pick<Progress, 'delivery' | 'attempt'>,
  nowMs: number,
): Check {
  const explained = { to: `/events/${event.uid}`, action: 'See why' };
  if (!delivery) {
    if (event.status !== 'pending')
      return { state: 'bad', sentence: 'No endpoint received the event.', ...explained };
    return nowMs - new Date(event.created_at).getTime() > AGENT_MS
      ? { state: 'bad', sentence: 'No agent is routing events. Start one with gateway agent.' }
      : { state: 'waiting', sentence: 'The event is being routed.' };
  }
  const { status, reason, uid, endpoint_metadata: endpoint } = delivery;
  const name = endpoint.name ?? 'the endpoint';
  const more = { to: `/deliveries/${uid}`, action: 'View delivery' };
  if (status === 'success')
    return { state: 'ok', sentence: `${name} accepted the event.`, ...more };
  if (delivery.attempts === 0 && status !== 'discarded')
    return { state: 'waiting', sentence: `The event is on its way to ${name}.`, ...more };
  const answer = attempt?.http_status
    ? `${name} answered ${attempt.http_status}.`
    : `${name} has not accepted the event.`;
  const why = reason ?? (attempt?.http_status ? undefined : attempt?.error);
  const sentences = [answer, why && capital(why), status === 'retry' && 'The gateway will retry.'];
  return { state: 'bad', sentence: sentences.filter(Boolean).join(' '), ...more };
}
