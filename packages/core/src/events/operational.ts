/** These report on the endpoints and sources of a project. */
export const OPERATIONAL_TYPES = [
  'gateway.endpoint.disabled',
  'gateway.endpoint.activated',
  'gateway.endpoint.disabling',
  'gateway.endpoint.failing',
  'gateway.endpoint.recovered',
  'gateway.endpoint.breaker_opened',
  'gateway.endpoint.breaker_closed',
  'gateway.delivery.exhausted',
  'gateway.source.failing',
  'gateway.source.recovered',
  'gateway.source.paused',
  'gateway.source.lost',
] as const;
export type OperationalType = (typeof OPERATIONAL_TYPES)[number];

const types: ReadonlySet<string> = new Set(OPERATIONAL_TYPES);

export function isOperational(eventType: string): boolean {
  return types.has(eventType);
}
