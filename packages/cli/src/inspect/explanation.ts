import type { ExplainedSubscription, Explanation } from '@gateway/agent/inspect';
import { sentenceOf, type RoutingRule } from '@gateway/agent/model';
import { GatewayError } from '@gateway/core/errors';
import { timeOfId } from '@gateway/core/events';
import { maskUrls } from '@gateway/core/logging';
import type { OtherRecord } from '@gateway/store/deliveries';
import { formatDuration } from '../app/duration.js';
import { escapeLine } from '../output/escape-terminal.js';
import { counted, recordText } from '../output/record.js';
import { deliveryLines } from './delivery-text.js';
import { endpointText, mismatchText, subscriptionRecord, targetsText } from './route-text.js';

/** Subscriptions that a text names. */
const SUBSCRIPTIONS_MAX = 100;
/** An event is routed within this time when an agent has room. */
const ROUTED_WITHIN_MS = 10_000;

const RULES: Readonly<Record<RoutingRule, string>> = {
  broadcast: 'It is a broadcast, so every endpoint of the project gets it; endpoint_id, owner_id and subscriptions are not looked at.',
  endpoint_id: 'It names an endpoint_id, so that endpoint alone gets it; owner_id and subscriptions are not looked at.',
  owner_id: 'It names an owner_id, so every endpoint of that owner gets it; subscriptions are not looked at.',
  subscriptions: 'It names neither endpoint_id nor owner_id, so the subscriptions of the project decide.',
};

/** An explanation as JSON, with the fields of the management API. */
export function explanationRecord({ event, rule, deliveries, now, waiting, keyExpiry, quarantined, meant }: Explanation): object {
  const { id, project_deleted: _, data: _data, data_bytes: _bytes, headers: _headers, ...shown } = event;
  return {
    event: {
      uid: id,
      ...shown,
      idempotency_key_held_until: keyExpiry,
      sentence: event.outcome === null ? null : sentenceOf(event.outcome),
      quarantine_status: quarantined,
    },
    rule,
    meant,
    agents: waiting.agents,
    pending_before: event.outcome === null ? waiting.before : null,
    delivery_counts: deliveries.counts,
    deliveries: deliveries.first.map(({ id: uid, endpoint_url, next_attempt_at, ...it }) => ({
      uid,
      ...it,
      endpoint_url: endpoint_url && maskUrls(endpoint_url),
      next_attempt_at: next_attempt_at instanceof Date ? next_attempt_at : null,
      held: typeof next_attempt_at === 'number',
    })),
    subscriptions: (now?.subscriptions ?? []).map((it) => ({
      ...subscriptionRecord(it),
      endpoint_id: it.subscription.endpoint_id,
      changed_since: isChanged(it.subscription, event.accepted_at),
    })),
    now: now && { outcome: now.outcome, endpoint_ids: now.targets.map(({ endpoint }) => endpoint.id) },
  };
}

/** An explanation for a person, safe for a terminal. */
export function explanationText(explanation: Explanation, now = new Date()): string {
  const { event, rule, waiting, keyExpiry, quarantined, meant } = explanation;
  const key = keyExpiry
    ? `until ${keyExpiry.toISOString()} further messages with it are duplicates of this event and make none`
    : 'its window is over, so the key is free again';
  const facts = recordText([
    ['event', `${event.id} ${event.event_type}, ${event.message_type}, ${event.data_bytes} bytes`],
    ['project', `${event.project_name} (${event.project_id})${event.project_deleted ? ', deleted' : ''}`],
    [
      'source',
      event.source_id === null
        ? 'none: it was created over the management API'
        : `${event.source_name ?? 'gone'} (${event.source_id}), coordinates ${event.coordinates}`,
    ],
    ['time', `${event.occurred_at.toISOString()} at the broker, accepted ${event.accepted_at.toISOString()}`],
    ['endpoint_id', event.endpoint_id],
    ['owner_id', event.owner_id],
    ['idempotency_key', event.idempotency_key && `${event.idempotency_key}; ${key}`],
    ['quarantine', quarantined && `its message was in quarantine first, and is ${quarantined} there`],
    ['rule', RULES[rule]],
    [
      'status',
      event.outcome === null
        ? pendingText(event.accepted_at, waiting, now)
        : `${event.status}: ${event.outcome}. ${sentenceOf(event.outcome)}`,
    ],
    ['hint', meant && `the project has ${meant}, which is near`],
  ]);
  return [facts, ...deliveries(explanation, now), ...subscriptions(explanation), ...otherwise(explanation)].join('\n');
}

/** What a pending event waits for, as far as the database tells. */
function pendingText(acceptedAt: Date, { agents, before }: Explanation['waiting'], now: Date): string {
  const waitedMs = Math.max(0, now.getTime() - acceptedAt.getTime());
  const since = `pending for ${formatDuration(waitedMs)}`;
  if (agents.length === 0) return `${since}: no agent is running, so nobody routes it. Start one with \`gateway agent\`.`;
  const earlier = before === 1000 ? 'a thousand or more' : before;
  const queue = before === 0 ? 'nothing is before it' : `${earlier} events that were accepted earlier are pending too`;
  const running = agents.length === 1 ? 'one agent is running' : `${agents.length} agents are running`;
  if (waitedMs < ROUTED_WITHIN_MS) return `${since}: ${running}, and ${queue}; ask again in a moment.`;
  return `${since}: ${running}, and ${queue}. Look at /healthz of the agents: Redis may be away, or the agents are full of deliveries.`;
}

function deliveries({ event, deliveries: { first, counts }, waiting }: Explanation, now: Date): string[] {
  const total = totalOf(counts);
  if (total === 0) return ['', 'no deliveries'];
  const statuses = Object.entries(counts).map(([status, count]) => `${count} ${status}`);
  const context = { projectId: event.project_id, agents: waiting.agents, now };
  const more = `  ${total - first.length} more: GET /api/v1/projects/${event.project_id}/eventdeliveries?eventId=${event.id}`;
  return [
    '',
    `${counted(total, 'delivery', 'deliveries')}: ${statuses.join(', ')}`,
    ...first.flatMap((it) => deliveryLines(it, context)).map((line) => `  ${line}`),
    ...(total > first.length ? [more] : []),
  ];
}

function totalOf(counts: Explanation['deliveries']['counts']): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

function subscriptions({ event, now }: Explanation): string[] {
  const all = now?.subscriptions ?? [];
  if (now?.rule !== 'subscriptions' || now.outcome === 'unknown_project') return [];
  if (all.length === 0) return ['', 'the project has no subscriptions'];
  const shown = all.slice(0, SUBSCRIPTIONS_MAX).map((it) => subscriptionLine(it, event.accepted_at));
  const more = all.length > SUBSCRIPTIONS_MAX ? [`${all.length - SUBSCRIPTIONS_MAX} more; --json has all`] : [];
  return ['', 'subscriptions, as they are now', ...[...shown, ...more].map((line) => `  ${line}`)];
}

function subscriptionLine({ subscription, endpoint, mismatch }: ExplainedSubscription, acceptedAt: Date): string {
  const name = escapeLine(subscription.name, 100);
  const since = isChanged(subscription, acceptedAt)
    ? `; changed since the event, ${(subscription.deleted_at ?? subscription.updated_at).toISOString()}`
    : '';
  return mismatch ? `not ${name}: ${mismatchText(mismatch)}${since}` : `${name} matches: ${endpoint ? endpointText(endpoint) : ''}${since}`;
}

/** Whether a subscription was changed since the event. */
function isChanged({ updated_at, deleted_at }: ExplainedSubscription['subscription'], acceptedAt: Date): boolean {
  return updated_at > acceptedAt || (deleted_at !== null && deleted_at > acceptedAt);
}

/** Where the event would go now, when that differs from where it went. */
function otherwise({ event, deliveries: { first, counts }, now }: Explanation): string[] {
  if (!now || event.outcome === null) return [];
  const total = totalOf(counts);
  const went = new Set(first.map(({ endpoint_id, subscription_id }) => `${endpoint_id} ${subscription_id}`));
  const same = total === now.targets.length && now.targets.every((it) => went.has(`${it.endpoint.id} ${it.subscription?.id ?? null}`));
  return same || total > first.length ? [] : ['', `as the project is now, it ${targetsText(now)}`];
}

/** The error for an id that no event has: what has it instead, and what to run. */
export function unknownEvent(id: string, [other]: readonly OtherRecord[]): GatewayError {
  const [sentence, fix] = other ? otherRecordText(id, other) : nowhereText(id);
  return new GatewayError('event_unknown', { sentence, fix });
}

function otherRecordText(id: string, { thing, detail, project_id }: OtherRecord): [sentence: string, fix: string] {
  if (thing === 'event delivery')
    return [
      `${id} is an event delivery of the event ${detail}`,
      `run \`gateway utils explain ${detail}\`, which tells of all its deliveries`,
    ];
  if (thing === 'quarantined message') {
    const sentence =
      detail === 'quarantined'
        ? `${id} is a message that could not be accepted, so it is no event: it is in quarantine`
        : `${id} is a message that was in quarantine and is ${detail}; there is no event of it`;
    return [sentence, `run \`gateway utils quarantine show ${id}\`, which tells why`];
  }
  const fix = `give the id of an event; GET /api/v1/projects/${project_id}/events lists them`;
  return [`${id} is the ${thing} ${escapeLine(detail, 200)}, not an event`, fix];
}

function nowhereText(id: string): [sentence: string, fix: string] {
  const ms = timeOfId(id);
  // A later time is none: the id is not one of the gateway.
  const time = ms < Date.UTC(2200) ? `; by its first digits it would be of ${new Date(ms).toISOString()}` : '';
  return [
    `no event, event delivery or quarantined message has the id ${id}${time}`,
    'check the id and the database. A message whose idempotency key another event holds makes no event, one that its function drops is not kept, and ' +
      'events are deleted after their retention',
  ];
}
