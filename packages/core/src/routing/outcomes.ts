/** Stored with an event, each with the resulting event status. */
export const routingOutcomes = {
  routed: { status: 'processed', sentence: 'The event went to the endpoints of its deliveries.' },
  no_subscription: {
    status: 'processed',
    sentence: 'No subscription of the project matches the event type, headers and body.',
  },
  no_endpoints: {
    status: 'processed',
    sentence: 'The event was a broadcast, and the project has no endpoints.',
  },
  unknown_endpoint: {
    status: 'failed',
    sentence: 'The message named an endpoint_id that the project does not have.',
  },
  unknown_owner: {
    status: 'failed',
    sentence: 'The message named an owner_id that no endpoint of the project has.',
  },
  filter_budget: {
    status: 'failed',
    sentence:
      'The filters of the project needed more than 100,000 comparisons for this event, so it went nowhere. Simplify the filters that look at large objects, or send smaller ones. The event is kept.',
  },
  unknown_project: {
    status: 'failed',
    sentence: 'The project was deleted before the event was routed.',
  },
} as const satisfies Record<string, { status: 'processed' | 'failed'; sentence: string }>;

export type RoutingOutcome = keyof typeof routingOutcomes;

/**
 * A newer configuration may change the outcome if a recipient may have been created at about the
 * same time as the event.
 */
export function mayChange(outcome: RoutingOutcome): boolean {
  return outcome !== 'routed' && outcome !== 'filter_budget';
}

/** An unknown outcome is returned unchanged. */
export function sentenceOf(code: string): string {
  return Object.hasOwn(routingOutcomes, code)
    ? routingOutcomes[code as RoutingOutcome].sentence
    : code;
}

export const ruleSentences = {
  broadcast:
    'The event is a broadcast: every endpoint of the project receives it. endpoint_id, owner_id and subscriptions are ignored.',
  endpoint_id:
    'The event has an endpoint_id: only that endpoint receives it. owner_id and subscriptions are ignored.',
  owner_id:
    'The event has an owner_id: every endpoint of that owner receives it. Subscriptions are ignored.',
  subscriptions:
    'The event has neither an endpoint_id nor an owner_id, so the subscriptions of the project decide.',
} as const;

export type RoutingRule = keyof typeof ruleSentences;

export interface Addressed {
  readonly messageType: 'single' | 'fanout' | 'broadcast';
  readonly endpointId: string | null;
  readonly ownerId: string | null;
}

/**
 * The narrower name wins: a producer that always sets an owner and sometimes an endpoint means that
 * endpoint. The reverse would send to others.
 */
export function routingRule({ messageType, endpointId, ownerId }: Addressed): RoutingRule {
  if (messageType === 'broadcast') return 'broadcast';
  if (endpointId !== null) return 'endpoint_id';
  return ownerId === null ? 'subscriptions' : 'owner_id';
}

export function needsMatching(event: Addressed): boolean {
  return routingRule(event) === 'subscriptions';
}
