import type { Endpoint } from '@gateway/client';
import type { Tone } from '../../components/data.js';

export interface Attempts {
  readonly success: number;
  readonly failure: number;
}

export interface EndpointState {
  readonly label: string;
  readonly tone: Tone;
  readonly sentence: string;
  /** When the state ends by itself. */
  readonly until?: string;
}

/** The share of failed requests, from 0 to 1, at which an endpoint counts as failing. */
const FAILING = 0.5;

/** Describes whether an endpoint receives its deliveries: a label, a tone and a sentence. */
export function stateOf(
  { status, status_reason: reason, circuit_breaker: breaker }: Endpoint,
  attempts?: Attempts,
): EndpointState {
  if (status === 'paused')
    return {
      label: 'paused',
      tone: 'warn',
      sentence: 'Its deliveries are held until it is activated.',
    };
  if (status === 'inactive')
    return {
      label: 'inactive',
      tone: 'bad',
      sentence: `${reason ?? 'It was deactivated.'} Events for it are not delivered.`,
    };
  if (breaker?.state === 'open') {
    const { failures, requests, until } = breaker;
    const sentence = `Its circuit breaker is open: ${failures} of ${requests} requests failed, so its deliveries wait. One request tries it`;
    return { label: 'breaker open', tone: 'bad', sentence, ...(until ? { until } : {}) };
  }
  if (breaker?.state === 'half_open')
    return {
      label: 'probing',
      tone: 'warn',
      sentence:
        'Its circuit breaker was open. One request tries the endpoint now; the others wait.',
    };
  const share = shareOf(attempts);
  if (share !== undefined && 1 - share >= FAILING)
    return {
      label: 'failing',
      tone: 'bad',
      sentence: 'Most of the requests of the last day failed.',
    };
  return { label: 'active', tone: 'ok', sentence: 'Deliveries to it are sent.' };
}

/** Returns the share of accepted requests, from 0 to 1, or undefined if there were no requests. */
export function shareOf(attempts: Attempts | undefined): number | undefined {
  const all = attempts ? attempts.success + attempts.failure : 0;
  return attempts && all > 0 ? attempts.success / all : undefined;
}
