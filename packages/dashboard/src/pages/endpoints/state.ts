import type { Endpoint } from '@gateway/client';
import { api, type ReadOptions } from '../../api/index.js';
import type { Tone } from '../../components/index.js';
import { compact, percent } from '../../format/number.js';
import { inactiveSentence } from '../../portal/states.js';
import { isPortal } from '../../router/location.js';

export interface Attempts {
  readonly success: number;
  readonly failure: number;
}

interface EndpointState {
  readonly label: string;
  readonly tone: Tone;
  readonly sentence: string;
  readonly until?: string;
}

/** The share of failed requests, from 0 to 1. */
const FAILING = 0.5;

/** The portal's sentences speak to the endpoint's owner. */
const WORDS = {
  project: {
    paused: 'Deliveries are held until the endpoint is activated.',
    inactive: ({ status_reason: reason }: Endpoint) =>
      `${reason ?? 'The endpoint was deactivated.'} Events for this endpoint are not delivered.`,
    open: (failures: number, requests: number) =>
      `The circuit breaker is open: ${failures} of ${requests} requests failed. Deliveries are waiting. Next try`,
    probing:
      'The circuit breaker is half-open: one request tests the endpoint, and the other deliveries wait.',
    backOff: 'The endpoint asked for fewer requests. Deliveries wait until',
    lowered: (requests: number) =>
      `Deliveries are being sent, at most ${requests} at once because the endpoint answers more slowly or asked for fewer.`,
    failing: 'Most requests in the last 24 hours failed.',
    active: 'Deliveries are being sent.',
  },
  owner: {
    paused: 'This endpoint is paused. We hold its messages and send them when it is activated.',
    inactive: inactiveSentence,
    open: (failures: number, requests: number) =>
      `We paused sending because your server did not accept our requests: ${failures} of ${requests} failed. No message is lost. We try again`,
    probing: 'We paused sending and are now trying one request. If it succeeds, the others follow.',
    backOff: 'Your server asked for fewer requests. We hold its messages until',
    lowered: (requests: number) =>
      `We send at most ${requests} messages at once, because your server answers more slowly or asked for fewer.`,
    failing: 'Your server did not accept most of our requests in the last 24 hours.',
    active: 'We send messages to this endpoint.',
  },
} as const;

export function stateOf(endpoint: Endpoint, attempts?: Attempts): EndpointState {
  const { status, circuit_breaker: breaker } = endpoint;
  const words = WORDS[isPortal.value ? 'owner' : 'project'];
  if (status === 'paused') return { label: 'paused', tone: 'warn', sentence: words.paused };
  if (status === 'inactive')
    return { label: 'inactive', tone: 'bad', sentence: words.inactive(endpoint) };
  if (breaker?.state === 'open') {
    const { failures, requests, until } = breaker;
    const label = isPortal.value ? 'sending paused' : 'breaker open';
    const sentence = words.open(failures, requests);
    return { label, tone: 'bad', sentence, ...(until ? { until } : {}) };
  }
  if (breaker?.state === 'half_open')
    return { label: 'probing', tone: 'warn', sentence: words.probing };
  if (breaker?.back_off_until)
    return {
      label: 'backing off',
      tone: 'warn',
      sentence: words.backOff,
      until: breaker.back_off_until,
    };
  const share = shareOf(attempts);
  if (share !== undefined && 1 - share >= FAILING)
    return { label: 'failing', tone: 'bad', sentence: words.failing };
  const { current_concurrency: limit } = endpoint;
  return { label: 'active', tone: 'ok', sentence: limit ? words.lowered(limit) : words.active };
}

/** From 0 to 1. Undefined without requests. */
export function shareOf(attempts: Attempts | undefined): number | undefined {
  const all = attempts ? attempts.success + attempts.failure : 0;
  return attempts && all > 0 ? attempts.success / all : undefined;
}

/** Such as `99.2% of 1.2K requests were accepted`. */
export function acceptedWords(attempts: Attempts): string {
  const share = shareOf(attempts);
  if (share === undefined) return 'No requests';
  const all = attempts.success + attempts.failure;
  return `${percent(share)} of ${compact(all)} ${all === 1 ? 'request was' : 'requests were'} accepted`;
}

const DAY_MS = 24 * 3_600_000;

/** Covers the last day. Endpoints without any are omitted. */
export async function attemptsOf(
  endpointId: readonly string[],
  options: ReadOptions,
): Promise<ReadonlyMap<string, Attempts & { readonly last_at: string }>> {
  if (endpointId.length === 0) return new Map();
  const startDate = new Date(Date.now() - DAY_MS).toISOString();
  const { content } = await api().activity.endpoints({ endpointId, startDate }, options);
  return new Map(
    content.map(({ endpoint_id: id, attempts, last_attempt_at: last_at }) => [
      id,
      { ...attempts, last_at },
    ]),
  );
}
