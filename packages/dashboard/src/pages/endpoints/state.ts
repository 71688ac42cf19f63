import type { Endpoint } from '@gateway/client';
import type { Tone } from '../../components/data/badge.js';

/** Requests of the last hours that the endpoint accepted, and those that failed. */
export interface Attempts {
  readonly success: number;
  readonly failure: number;
}

export interface EndpointState {
  readonly label: string;
  readonly tone: Tone;
  /** What it means for deliveries. */
  readonly sentence: string;
  /** When that changes by itself. */
  readonly until?: string;
}

/** From this share of failed requests on, an endpoint is called failing. */
const FAILING = 0.5;

/** Whether an endpoint gets what is for it, in a word and a sentence. */
export function stateOf({ status, status_reason: reason, circuit_breaker: breaker }: Endpoint, attempts?: Attempts): EndpointState {
  if (status === 'paused') return { label: 'paused', tone: 'warn', sentence: 'Its deliveries are held until it is activated.' };
  if (status === 'inactive')
    return { label: 'inactive', tone: 'bad', sentence: `${reason ?? 'It was deactivated.'} Events for it are not delivered.` };
  if (breaker?.state === 'open') {
    const { failures, requests, until } = breaker;
    const sentence = `Its circuit breaker is open: ${failures} of ${requests} requests failed, so its deliveries wait. One request tries it`;
    return { label: 'breaker open', tone: 'bad', sentence, ...(until ? { until } : {}) };
  }
  if (breaker?.state === 'half_open')
    return {
      label: 'probing',
      tone: 'warn',
      sentence: 'Its circuit breaker was open. One request tries the endpoint now; the others wait.',
    };
  const share = shareOf(attempts);
  if (share !== undefined && 1 - share >= FAILING)
    return { label: 'failing', tone: 'bad', sentence: 'Most of the requests of the last day failed.' };
  return { label: 'active', tone: 'ok', sentence: 'Deliveries to it are sent.' };
}

/** The share of requests that were accepted; undefined when there were none. */
export function shareOf(attempts: Attempts | undefined): number | undefined {
  const all = attempts ? attempts.success + attempts.failure : 0;
  return attempts && all > 0 ? attempts.success / all : undefined;
}
