import type { Explanation } from '@gateway/agent/inspect';
import { sentenceOf } from '@gateway/agent/model';
import { maskUrls } from '@gateway/core/logging';
import { isChanged } from './present.js';

/** An explanation as JSON; fields are named as in the management API. */
export function explanationRecord({ event, rule, deliveries, now, waiting, keyExpiry, quarantined, meant }: Explanation): unknown {
  return {
    event: {
      uid: event.id,
      project_id: event.project_id,
      project_name: event.project_name,
      source_id: event.source_id,
      source_name: event.source_name,
      coordinates: event.coordinates,
      event_type: event.event_type,
      message_type: event.message_type,
      endpoint_id: event.endpoint_id,
      owner_id: event.owner_id,
      idempotency_key: event.idempotency_key,
      idempotency_key_held_until: keyExpiry,
      occurred_at: event.occurred_at,
      accepted_at: event.accepted_at,
      status: event.status,
      outcome: event.outcome,
      sentence: event.outcome === null ? null : sentenceOf(event.outcome),
      quarantine_status: quarantined,
    },
    rule,
    meant,
    agents: waiting.agents,
    pending_before: event.outcome === null ? waiting.before : null,
    delivery_counts: deliveries.counts,
    deliveries: deliveries.first.map(({ id, endpoint_url, next_attempt_at, ...it }) => ({
      uid: id,
      ...it,
      endpoint_url: endpoint_url && maskUrls(endpoint_url),
      next_attempt_at: next_attempt_at instanceof Date ? next_attempt_at : null,
      held: typeof next_attempt_at === 'number',
    })),
    subscriptions: (now?.subscriptions ?? []).map(({ subscription, mismatch }) => ({
      uid: subscription.id,
      name: subscription.name,
      endpoint_id: subscription.endpoint_id,
      matches: mismatch === null,
      mismatch,
      changed_since: isChanged(subscription, event.accepted_at),
    })),
    now: now && { outcome: now.outcome, endpoint_ids: now.targets.map(({ endpoint }) => endpoint.id) },
  };
}
