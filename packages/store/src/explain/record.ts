import { clip } from '@gateway/core/json';
import { maskUrls } from '@gateway/core/logging';
import {
  ruleSentences,
  sentenceOf,
  type SubscriptionMismatch,
  withSentence,
} from '@gateway/core/routing';
import type { Explanation } from './explain-event.js';
import type { FoundEvent } from './event-facts.js';
import type { ExplainedSubscription } from './explain-route.js';

/** Truncated as JSON: a value that a filter finds may be the event's whole data. */
const VALUE_CHARS = 1_000;

/** In the format of the management API. */
export function explanationRecord({
  event,
  rule,
  deliveries,
  now,
  counts,
  waiting,
  keyExpiry,
  quarantined,
  messageBytes,
  meant,
}: Explanation) {
  const { id, data: _data, data_bytes: _bytes, headers: _headers, ...shown } = event;
  const clip = clipper();
  return {
    event: {
      uid: id,
      ...shown,
      idempotency_key_held_until: keyExpiry,
      notes: notesOf(event),
      sentence: event.outcome === null ? null : sentenceOf(event.outcome),
      quarantine_status: quarantined,
      message_bytes: messageBytes,
    },
    rule,
    rule_sentence: ruleSentences[rule],
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
      ...subscriptionRecord(it, clip),
      endpoint_id: it.subscription.endpoint_id,
      changed_since: isChanged(it.subscription, event.accepted_at),
    })),
    subscription_count: counts.subscriptionCount,
    now:
      now && counts.isWhole
        ? {
            outcome: now.outcome,
            sentence: sentenceOf(now.outcome),
            endpoint_ids: now.targets.map(({ endpoint }) => endpoint.id),
            endpoint_count: counts.endpointCount,
          }
        : null,
  };
}

/** In the format of the management API. `mismatch` is null if the subscription matches. */
export function subscriptionRecord(
  { subscription: { id: uid, name }, mismatch }: ExplainedSubscription,
  clip = clipper(),
) {
  return {
    uid,
    name,
    matches: mismatch === null,
    mismatch: mismatch && withSentence(clippedMismatch(mismatch, clip)),
  };
}

function clippedMismatch(
  mismatch: SubscriptionMismatch,
  clip: (value: unknown) => unknown,
): SubscriptionMismatch {
  return mismatch.part === 'headers' || mismatch.part === 'body'
    ? { ...mismatch, wanted: clip(mismatch.wanted), found: clip(mismatch.found) }
    : mismatch;
}

/** Truncates a long value to the start of its JSON. Serialises each object only once. */
function clipper(): (value: unknown) => unknown {
  const clipped = new Map<unknown, unknown>();
  return (value) => {
    if (!clipped.has(value)) {
      const text = JSON.stringify(value) ?? '';
      clipped.set(value, text.length > VALUE_CHARS ? clip(text, VALUE_CHARS + 1) : value);
    }
    return clipped.get(value);
  };
}

/** For the event's sender. */
export function notesOf({ notes }: Pick<FoundEvent, 'notes'>): string[] {
  return notes === null ? [] : (JSON.parse(notes) as string[]);
}

/** Changed or deleted after the event was accepted. */
export function isChanged(
  { updated_at, deleted_at }: ExplainedSubscription['subscription'],
  acceptedAt: Date,
): boolean {
  return updated_at > acceptedAt || (deleted_at !== null && deleted_at > acceptedAt);
}
