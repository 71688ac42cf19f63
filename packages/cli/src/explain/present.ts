import type { ExplainedSubscription } from '@gateway/agent/inspect';
import type { Explanation } from '@gateway/agent/inspect';
import { sentenceOf, type RoutingRule } from '@gateway/agent/model';
import { formatDuration } from '../app/duration.js';
import { escapeLine } from '../output/escape-terminal.js';
import { textTable } from '../output/table.js';
import { deliveryLines } from './delivery-text.js';
import { endpointText, mismatchText, targetsText } from './route-text.js';

/** What a name from outside may take of a line. */
const NAME_CHARS = 200;
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

/** An explanation for a person. What comes from outside is made safe for a terminal. */
export function presentExplanation(
  explanation: Explanation,
  { width, now = new Date() }: { width: number | undefined; now?: Date },
): string {
  return [
    textTable(facts(explanation, now), width),
    ...deliveries(explanation, now),
    ...subscriptions(explanation),
    ...otherwise(explanation),
  ].join('\n');
}

function facts({ event, rule, waiting, keyExpiry, quarantined, meant }: Explanation, now: Date): [string, string][] {
  const name = (text: string) => escapeLine(text, NAME_CHARS);
  const lines: [string, string | null][] = [
    ['event', `${event.id} ${name(event.event_type)}, ${event.message_type}, ${event.data_bytes} bytes`],
    ['project', `${name(event.project_name)} (${event.project_id})${event.project_deleted ? ', deleted' : ''}`],
    [
      'source',
      event.source_id === null
        ? 'none: it was created over the management API'
        : `${name(event.source_name ?? 'gone')} (${event.source_id}), coordinates ${name(event.coordinates)}`,
    ],
    ['time', `${event.occurred_at.toISOString()} at the broker, accepted ${event.accepted_at.toISOString()}`],
    ['endpoint_id', event.endpoint_id && name(event.endpoint_id)],
    ['owner_id', event.owner_id && name(event.owner_id)],
    ['idempotency_key', event.idempotency_key && `${name(event.idempotency_key)}${keyText(keyExpiry)}`],
    ['quarantine', quarantined && `its message was in quarantine first, and is ${quarantined} there`],
    ['rule', RULES[rule]],
    [
      'status',
      event.outcome === null
        ? pendingText(event.accepted_at, waiting, now)
        : `${event.status}: ${event.outcome}. ${sentenceOf(event.outcome)}`,
    ],
    ['hint', meant && `the project has ${name(meant)}, which is near`],
  ];
  return lines.filter((line): line is [string, string] => line[1] !== null);
}

function keyText(heldUntil: Date | null): string {
  return heldUntil === null
    ? '; its window is over, so the key is free again'
    : `; until ${heldUntil.toISOString()} further messages with it are duplicates of this event and make none`;
}

/** What a pending event waits for, as far as the database tells. */
function pendingText(acceptedAt: Date, { agents, before }: Explanation['waiting'], now: Date): string {
  const since = `pending for ${formatDuration(Math.max(0, now.getTime() - acceptedAt.getTime()))}`;
  if (agents.length === 0) return `${since}: no agent is running, so nobody routes it. Start one with \`gateway agent\`.`;
  const queue =
    before === 0
      ? 'nothing is before it'
      : `${before === 1000 ? 'a thousand or more' : before} events that were accepted earlier are pending too`;
  const running = agents.length === 1 ? 'one agent is running' : `${agents.length} agents are running`;
  if (now.getTime() - acceptedAt.getTime() < ROUTED_WITHIN_MS) return `${since}: ${running}, and ${queue}; ask again in a moment.`;
  return `${since}: ${running}, and ${queue}. Look at /healthz of the agents: Redis may be away, or the agents are full of deliveries.`;
}

function deliveries({ event, deliveries: { first, counts }, waiting }: Explanation, now: Date): string[] {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (total === 0) return ['', 'no deliveries'];
  const statuses = Object.entries(counts).map(([status, count]) => `${count} ${status}`);
  const context = { projectId: event.project_id, agents: waiting.agents, now };
  return [
    '',
    `${total === 1 ? '1 delivery' : `${total} deliveries`}: ${statuses.join(', ')}`,
    ...first.flatMap((it) => deliveryLines(it, context)).map((line) => `  ${line}`),
    ...(total > first.length
      ? [`  ${total - first.length} more: GET /api/v1/projects/${event.project_id}/eventdeliveries?eventId=${event.id}`]
      : []),
  ];
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

/** Whether a subscription is not what the event met. */
export function isChanged({ updated_at, deleted_at }: ExplainedSubscription['subscription'], acceptedAt: Date): boolean {
  return updated_at > acceptedAt || (deleted_at !== null && deleted_at > acceptedAt);
}

/** Where the event would go now, when that is not where it went. */
function otherwise({ event, deliveries: { first, counts }, now }: Explanation): string[] {
  if (!now || event.outcome === null) return [];
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const went = new Set(first.map(({ endpoint_id, subscription_id }) => `${endpoint_id} ${subscription_id}`));
  const same = total === now.targets.length && now.targets.every((it) => went.has(`${it.endpoint.id} ${it.subscription?.id ?? null}`));
  return same || total > first.length ? [] : ['', `as the project is now, it ${targetsText(now)}`];
}
