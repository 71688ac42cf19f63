import { GatewayError } from '@gateway/core/errors';
import { timeOfId } from '@gateway/core/events';
import { ruleSentences, sentenceOf } from '@gateway/core/routing';
import {
  type ExplainedDelivery,
  type Explanation,
  isChanged,
  notesOf,
  type OtherRecord,
} from '@gateway/store/explain';
import { formatDuration } from '../app/flag-values.js';
import { escapeLine } from '../output/escape-terminal.js';
import { counted, recordText } from '../output/table.js';
import { endpointText, mismatchText, targetsText } from './route-text.js';

const SUBSCRIPTIONS_MAX = 100;
/** The time within which an agent with capacity routes an event. */
const ROUTED_WITHIN_MS = 10_000;
/**
 * The time after which an unclaimed due delivery needs an explanation. Agents normally claim it
 * within a second or two.
 */
const CLAIMED_WITHIN_MS = 5_000;

/** Formats an explanation as text that is safe to print on a terminal. */
export function explanationText(explanation: Explanation): string {
  const { event, rule, waiting, keyExpiry, quarantined, messageBytes, meant } = explanation;
  const { event_type: type, source_id: sourceId, idempotency_key: key, outcome } = event;
  const place = `${event.source_name ?? 'gone'} (${sourceId}), coordinates ${event.coordinates}`;
  const held = keyExpiry
    ? `until ${keyExpiry.toISOString()} further messages with this key are duplicates and create no event`
    : 'the window is over, so the key can be used again';
  const facts = recordText([
    ['event', `${event.id} ${type}, ${event.message_type}, ${event.data_bytes} bytes`],
    [
      'project',
      `${event.project_name} (${event.project_id})${event.project_deleted ? ', deleted' : ''}`,
    ],
    ['source', sourceId === null ? 'none: it was created over the management API' : place],
    [
      'archive',
      event.coordinates.startsWith('archive/')
        ? `it was sent again: it was event ${event.coordinates.slice('archive/'.length)}`
        : null,
    ],
    [
      'time',
      `${event.occurred_at.toISOString()} at the broker, accepted ${event.accepted_at.toISOString()}`,
    ],
    ['endpoint_id', event.endpoint_id],
    ['owner_id', event.owner_id],
    ['idempotency_key', key && `${key}; ${held}`],
    ['quarantine', quarantined && `its message was quarantined first and is now ${quarantined}`],
    [
      'message',
      messageBytes === null
        ? null
        : `${messageBytes} bytes; \`gateway utils explain ${event.id} --message\` writes them`,
    ],
    ['notes', notesOf(event).join('; ') || null],
    ['rule', ruleSentences[rule]],
    [
      'status',
      outcome === null
        ? pendingText(event.accepted_at, waiting)
        : `${event.status}: ${outcome}. ${sentenceOf(outcome)}`,
    ],
    ['hint', meant && `the project has ${meant}, which is similar`],
  ]);
  return [facts, ...deliveryLines(explanation), ...subscriptionLines(explanation)].join('\n');
}

function pendingText(acceptedAt: Date, { agents, before }: Explanation['waiting']): string {
  const waitedMs = Math.max(0, Date.now() - acceptedAt.getTime());
  const since = `pending for ${formatDuration(waitedMs)}`;
  if (agents.length === 0)
    return `${since}: no agent is running to route it. Start one with \`gateway agent\`.`;
  const queue =
    before === 0
      ? 'no earlier event is pending'
      : `${before === 1000 ? 'a thousand or more' : before} earlier events are pending too`;
  const next =
    waitedMs < ROUTED_WITHIN_MS
      ? 'Check again in a moment.'
      : 'Check /healthz of the agents: Redis may be unavailable, or the agents are at capacity.';
  const running = agents.length === 1 ? 'one agent is' : `${agents.length} agents are`;
  return `${since}: ${running} running, and ${queue}. ${next}`;
}

/** Formats about three lines per delivery: endpoint, outcome and next step. */
function deliveryLines({
  event,
  deliveries: { first, counts },
  waiting: { agents },
}: Explanation): string[] {
  const total = totalOf(counts);
  if (total === 0) return ['', 'no deliveries'];
  const statuses = Object.entries(counts).map(([status, count]) => `${count} ${status}`);
  const lines = ['', `${counted(total, 'delivery', 'deliveries')}: ${statuses.join(', ')}`];
  const api = `/api/v1/projects/${event.project_id}`;
  for (const it of first) {
    const { endpoint_name: name, endpoint_url: url, endpoint_status: status } = it;
    lines.push(
      `  ${endpointText({ name, url, status })}`,
      `    ${it.id}  ${it.status}${attemptsText(it)}`,
      ...nextLines(it, api, agents.length > 0).map((line) => `    ${line}`),
    );
  }
  if (total > first.length)
    lines.push(`  ${total - first.length} more: GET ${api}/eventdeliveries?eventId=${event.id}`);
  return lines;
}

function totalOf(counts: Explanation['deliveries']['counts']): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

function attemptsText({
  attempts,
  attempted_at,
  http_status,
  error_class,
  error,
  recovered,
}: ExplainedDelivery): string {
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
  return ` after ${counted(attempts, 'attempt')}; the last, at ${attempted_at.toISOString()}, ${answer}${why}${twice}`;
}

function nextLines(
  { status, reason, id, ...delivery }: ExplainedDelivery,
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
        `to send it again: PUT ${api}/eventdeliveries/${id}/resend`,
      ];
    case 'processing': {
      const { agent_name: agent, claimed_by, updated_at: at } = delivery;
      if (agent !== null)
        return [`the agent ${escapeLine(agent)} holds it since ${at.toISOString()}`];
      const none = hasAgents ? '' : ', and none is running';
      return [
        `its agent ${claimed_by} is dead; another agent takes it over within a heartbeat${none}`,
      ];
    }
    case 'scheduled':
    case 'retry':
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
  }: Omit<ExplainedDelivery, 'status' | 'reason' | 'id'>,
  api: string,
  hasAgents: boolean,
): string {
  if (!(next instanceof Date)) {
    return endpoint_status === 'paused'
      ? `held while its endpoint is paused; POST ${api}/endpoints/${endpoint_id}/activate sends it`
      : 'held, although its endpoint is not paused: activate the endpoint again';
  }
  const dueInMs = next.getTime() - Date.now();
  const at = next.toISOString();
  if (dueInMs > 0) return `next attempt at ${at}, in ${formatDuration(dueInMs)}`;
  if (!hasAgents) return `due since ${at}; no agent is running: start one with \`gateway agent\``;
  if (-dueInMs < CLAIMED_WITHIN_MS) return `due since ${at}; an agent will claim it in a moment`;
  const part = attempts === 0 ? 'first attempts' : 'retries';
  return `due since ${at} and not claimed: the agents are at capacity with deliveries to slow endpoints, or none of them makes ${part} (agent.mode)`;
}

/**
 * Formats the subscriptions if they decide the route, and the current route if it differs from the
 * actual deliveries.
 */
function subscriptionLines({ event, deliveries: { first, counts }, now }: Explanation): string[] {
  if (!now) return [];
  const lines: string[] = [];
  const all = now.subscriptions;
  if (now.rule === 'subscriptions' && now.outcome !== 'unknown_project') {
    lines.push('', all.length === 0 ? 'the project has no subscriptions' : 'current subscriptions');
    for (const { subscription, endpoint, mismatch } of all.slice(0, SUBSCRIPTIONS_MAX)) {
      const name = escapeLine(subscription.name, 100);
      const match = mismatch
        ? `not ${name}: ${mismatchText(mismatch)}`
        : `${name} matches: ${endpoint ? endpointText(endpoint) : ''}`;
      const changedAt = (subscription.deleted_at ?? subscription.updated_at).toISOString();
      lines.push(
        `  ${match}${isChanged(subscription, event.accepted_at) ? `; changed since the event, ${changedAt}` : ''}`,
      );
    }
    if (all.length > SUBSCRIPTIONS_MAX)
      lines.push(`  ${all.length - SUBSCRIPTIONS_MAX} more; --json has all`);
  }
  const total = totalOf(counts);
  const went = new Set(
    first.map(({ endpoint_id, subscription_id }) => `${endpoint_id} ${subscription_id}`),
  );
  const same =
    total === now.targets.length &&
    now.targets.every((it) => went.has(`${it.endpoint.id} ${it.subscription?.id ?? null}`));
  if (event.outcome !== null && !same && total <= first.length)
    lines.push('', `with the current configuration, it ${targetsText(now)}`);
  return lines;
}

/**
 * Returns the error for an event whose message was not kept.
 *
 * @param size the size in bytes of a message that was too large to keep
 */
export function messageNotKept(id: string, size: number | undefined): GatewayError {
  const fix =
    size === undefined
      ? 'set keep_messages of its source to store the messages of future events'
      : `it has ${size} bytes; messages of up to 64 KB are kept, with their headers`;
  return new GatewayError('not_found', { thing: 'message of the event', id, fix });
}

/**
 * Returns the error for an unknown event id. If another record has the id, the error includes that
 * record and the command to run.
 */
export function unknownEvent(id: string, [other]: readonly OtherRecord[]): GatewayError {
  const unknown = (sentence: string, fix: string) =>
    new GatewayError('event_unknown', { sentence, fix });
  if (!other) {
    const ms = timeOfId(id);
    // A later time is impossible: the gateway did not create the id, so no time is shown.
    const time =
      ms < Date.UTC(2200)
        ? `; according to its first digits it was created at ${new Date(ms).toISOString()}`
        : '';
    return unknown(
      `no event, event delivery or quarantined message has the id ${id}${time}`,
      'check the id and the database. A message with the idempotency key of another event creates no event, a message dropped by its function is not stored, and ' +
        'events are deleted after their retention',
    );
  }
  const { thing, detail, project_id: projectId } = other;
  if (thing === 'event delivery')
    return unknown(
      `${id} is an event delivery of the event ${detail}`,
      `run \`gateway utils explain ${detail}\`, which shows all its deliveries`,
    );
  if (thing === 'quarantined message')
    return unknown(
      detail === 'quarantined'
        ? `${id} is a quarantined message, not an event`
        : `${id} is a quarantined message that is now ${detail}; it has no event`,
      `run \`gateway utils quarantine show ${id}\` to see why`,
    );
  const fix = `give the id of an event; GET /api/v1/projects/${projectId}/events lists them`;
  return unknown(`${id} is the ${thing} ${escapeLine(detail, 200)}, not an event`, fix);
}
