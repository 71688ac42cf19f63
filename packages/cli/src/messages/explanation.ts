import type { EventExplanation, EventMessage } from '@gateway/client';
import { GatewayError } from '@gateway/core/errors';
import { maskUrls } from '@gateway/core/logging';
import { formatDuration } from '../app/flag-values.js';
import { escapeLine } from '../output/escape-terminal.js';
import { counted, recordText } from '../output/table.js';

const NAMED_MAX = 50;
/** An agent with capacity routes an event within this time. */
const ROUTED_WITHIN_MS = 10_000;
/**
 * After this time, an unclaimed due delivery needs an explanation. Agents normally claim it within
 * a second or two.
 */
const CLAIMED_WITHIN_MS = 5_000;

type DeliveryOfEvent = EventExplanation['deliveries'][number];

/** Safe to print on a terminal. */
export function explanationText(explanation: EventExplanation): string {
  const { event, meant } = explanation;
  const { source_id: sourceId, coordinates, idempotency_key: key, outcome } = event;
  const held = event.idempotency_key_held_until
    ? `until ${event.idempotency_key_held_until} further messages with this key are duplicates and create no event`
    : 'the window is over, so the key can be used again';
  const facts = recordText([
    ['event', `${event.uid} ${event.event_type}, ${event.message_type}`],
    ['project', `${event.project_name} (${event.project_id})`],
    [
      'source',
      sourceId === null
        ? 'none: it was created over the management API'
        : `${event.source_name ?? 'gone'} (${sourceId}), coordinates ${coordinates}`,
    ],
    [
      'archive',
      coordinates.startsWith('archive/')
        ? `it was sent again: it was event ${coordinates.slice('archive/'.length)}`
        : null,
    ],
    ['time', `${event.occurred_at} at the broker, accepted ${event.accepted_at}`],
    ['endpoint_id', event.endpoint_id],
    ['owner_id', event.owner_id],
    ['idempotency_key', key && `${key}; ${held}`],
    [
      'quarantine',
      event.quarantine_status &&
        `its message was quarantined first and is now ${event.quarantine_status}`,
    ],
    [
      'message',
      event.message_bytes === null
        ? null
        : `${event.message_bytes} bytes; \`gateway utils explain ${event.uid} --message\` writes them`,
    ],
    ['key', event.message?.key ?? null],
    ['attributes', namesText(event.message?.attributes)],
    ['query', namesText(event.message?.query)],
    ['notes', event.notes.join('; ') || null],
    ['rule', explanation.rule_sentence],
    [
      'status',
      outcome === null
        ? pendingText(explanation)
        : `${event.status}: ${outcome}. ${event.sentence}`,
    ],
    ['hint', meant && `the project has ${meant}, which is similar`],
  ]);
  return [facts, ...deliveryLines(explanation), ...subscriptionLines(explanation)].join('\n');
}

function namesText(values: Readonly<Record<string, string>> | undefined): string | null {
  return values
    ? Object.entries(values)
        .map((pair) => pair.join('='))
        .join(', ')
    : null;
}

function pendingText({ event, agents, pending_before: before }: EventExplanation): string {
  const waitedMs = Math.max(0, Date.now() - Date.parse(event.accepted_at));
  const since = `pending for ${formatDuration(waitedMs)}`;
  if (agents === 0)
    return `${since}: no agent is running to route it. Start one with \`gateway agent\`.`;
  const queue = before
    ? `${before === 1000 ? 'a thousand or more' : before} earlier events are pending too`
    : 'no earlier event is pending';
  const next =
    waitedMs < ROUTED_WITHIN_MS
      ? 'Check again in a moment.'
      : 'Check /healthz of the agents: Redis may be unavailable, or the agents are at capacity.';
  const running = agents === 1 ? 'one agent is' : `${agents} agents are`;
  return `${since}: ${running} running, and ${queue}. ${next}`;
}

/** About three lines per delivery: endpoint, outcome and next step. */
function deliveryLines({
  event,
  deliveries,
  delivery_counts: counts,
  agents,
}: EventExplanation): string[] {
  const total = totalOf(counts);
  if (total === 0) return ['', 'no deliveries'];
  const statuses = Object.entries(counts).map(([status, count]) => `${count} ${status}`);
  const lines = ['', `${counted(total, 'delivery', 'deliveries')}: ${statuses.join(', ')}`];
  const api = `/api/v1/projects/${event.project_id}`;
  for (const it of deliveries) {
    lines.push(
      `  ${endpointText(it)}`,
      `    ${it.uid}  ${it.status}${attemptsText(it)}`,
      ...nextLines(it, api, agents > 0).map((line) => `    ${line}`),
    );
  }
  if (total > deliveries.length)
    lines.push(
      `  ${total - deliveries.length} more: GET ${api}/eventdeliveries?eventId=${event.uid}`,
    );
  return lines;
}

/** `name (url, status)`. Credentials are masked; the status `active` is omitted. */
function endpointText({ endpoint_name, endpoint_url, endpoint_status }: DeliveryOfEvent): string {
  const name = escapeLine(endpoint_name ?? 'an endpoint that is gone', 100);
  const url = escapeLine(maskUrls(endpoint_url ?? 'no URL'), 200);
  const isPlain = !endpoint_status || endpoint_status === 'active';
  return `${name} (${url}${isPlain ? '' : `, ${endpoint_status}`})`;
}

function totalOf(counts: EventExplanation['delivery_counts']): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

function attemptsText({
  attempts,
  attempted_at,
  http_status,
  error_class,
  error,
  recovered,
}: DeliveryOfEvent): string {
  if (attempts === 0 || attempted_at === null) return ', not attempted';
  const answer = http_status === null ? 'had no answer' : `was answered ${http_status}`;
  const why =
    error_class === null || error_class === 'status'
      ? ''
      : ` (${error_class}${error ? `: ${escapeLine(error, 200)}` : ''})`;
  const twice =
    recovered > 0
      ? `; recovered from a dead agent ${recovered} times, so a request may have been sent twice`
      : '';
  return ` after ${counted(attempts, 'attempt')}; the last, at ${attempted_at}, ${answer}${why}${twice}`;
}

function nextLines(
  { status, reason, uid, ...delivery }: DeliveryOfEvent,
  api: string,
  hasAgents: boolean,
): string[] {
  switch (status) {
    case 'success':
      return [];
    case 'failure':
    case 'discarded':
      return [
        escapeLine(reason ?? 'no reason was recorded'),
        `to send it again: PUT ${api}/eventdeliveries/${uid}/resend`,
      ];
    case 'processing':
      return [
        hasAgents
          ? `an agent holds it since ${delivery.updated_at}`
          : 'its agent is dead; another agent takes it over within a heartbeat, and none is running',
      ];
    default:
      return [
        waitingLine(delivery, api, hasAgents),
        ...(reason === null ? [] : [escapeLine(reason)]),
      ];
  }
}

function waitingLine(
  {
    next_attempt_at: next,
    endpoint_id,
    endpoint_status,
    attempts,
    order_key: key,
    waits_for_delivery_id: first,
    parked_at: parked,
  }: Omit<DeliveryOfEvent, 'status' | 'reason' | 'uid'>,
  api: string,
  hasAgents: boolean,
): string {
  if (next === null && key !== null) {
    if (first === null) return 'waits for its turn, which an agent will give it in a moment';
    const waits = `waits for the delivery ${first}, which has the same key`;
    return parked === null
      ? waits
      : `${waits} and failed, so that the key is parked since ${parked}; PUT ${api}/endpoints/${endpoint_id}/ordered-keys/${key}/release sends that again, /skip goes on without it`;
  }
  if (next === null) {
    return endpoint_status === 'paused'
      ? `held while its endpoint is paused; POST ${api}/endpoints/${endpoint_id}/activate sends it`
      : 'held, although its endpoint is not paused: activate the endpoint again';
  }
  const dueInMs = Date.parse(next) - Date.now();
  if (dueInMs > 0) return `next attempt at ${next}, in ${formatDuration(dueInMs)}`;
  if (!hasAgents) return `due since ${next}; no agent is running: start one with \`gateway agent\``;
  if (-dueInMs < CLAIMED_WITHIN_MS) return `due since ${next}; an agent will claim it in a moment`;
  const part = attempts === 0 ? 'first attempts' : 'retries';
  return `due since ${next} and not claimed: the agents are at capacity with deliveries to slow endpoints, or none of them makes ${part} (agent.mode)`;
}

/**
 * The subscriptions if they decide the route, and the current route if it differs from the actual
 * deliveries.
 */
function subscriptionLines({
  event,
  rule,
  subscriptions,
  subscription_count: count,
  deliveries,
  delivery_counts: counts,
  now,
}: EventExplanation): string[] {
  const lines: string[] = [];
  const names = new Map(deliveries.map((it) => [it.endpoint_id, it.endpoint_name]));
  if (rule === 'subscriptions')
    lines.push('', count === 0 ? 'the project has no subscriptions' : 'current subscriptions');
  for (const { name, endpoint_id: id, mismatch, changed_since: isChanged } of subscriptions) {
    const shown = escapeLine(name, 100);
    const match = mismatch
      ? `not ${shown}: ${escapeLine(mismatch.sentence)}`
      : `${shown} matches: ${escapeLine(names.get(id) ?? `endpoint ${id}`, 100)}`;
    lines.push(`  ${match}${isChanged ? '; changed since the event' : ''}`);
  }
  if (count > subscriptions.length) lines.push(`  ${count - subscriptions.length} more`);
  const total = totalOf(counts);
  if (!now || event.outcome === null || total > deliveries.length) return lines;
  const isSame =
    total === now.endpoint_count && now.endpoint_ids.every((endpoint) => names.has(endpoint));
  const targets = counted(now.endpoint_count, 'endpoint');
  if (!isSame)
    lines.push(
      '',
      `with the current configuration, it would go ${now.endpoint_count === 0 ? `nowhere. ${now.sentence}` : `to ${targets}: ${now.endpoint_ids.slice(0, NAMED_MAX).join(', ')}`}`,
    );
  return lines;
}

/** Throws `not_found` if the message was too large to keep. */
export function messageBytes({ uid, raw, raw_encoding, raw_bytes: size }: EventMessage): Buffer {
  if (raw !== null) return Buffer.from(raw, raw_encoding);
  const fix = `it has ${size} bytes; messages of up to 64 KB are kept, with their headers`;
  throw new GatewayError('not_found', { thing: 'message of the event', id: uid, fix });
}
