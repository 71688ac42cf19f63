/** Why an event went where it went. The code is stored with the event; the sentence explains it to a person. */
export const routingOutcomes = {
  routed: { status: 'processed', sentence: 'The event went to the endpoints of its deliveries.' },
  no_subscription: {
    status: 'processed',
    sentence: 'No subscription of the project matches the event type, headers and body, so nobody was to get it.',
  },
  no_endpoints: { status: 'processed', sentence: 'The event was a broadcast, and the project has no endpoints.' },
  unknown_endpoint: { status: 'failed', sentence: 'The message named an endpoint_id that the project does not have.' },
  unknown_owner: { status: 'failed', sentence: 'The message named an owner_id that no endpoint of the project has.' },
  unknown_project: { status: 'failed', sentence: 'The project was deleted before the event was routed.' },
} as const satisfies Record<string, { status: 'processed' | 'failed'; sentence: string }>;

export type RoutingOutcome = keyof typeof routingOutcomes;

/** The sentence of a code as it is stored; the code itself when the table does not have it. */
export function sentenceOf(code: string): string {
  return Object.hasOwn(routingOutcomes, code) ? routingOutcomes[code as RoutingOutcome].sentence : code;
}
