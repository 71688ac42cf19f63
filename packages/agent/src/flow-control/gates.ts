// All that can hold a delivery back from its endpoint, in one ordered table. Whose turn it is comes
// before: projects and endpoints take turns, and a project that is over its share of the event loop
// is skipped.
import { inactiveReason } from '@gateway/ingest/routing/first-delivery';
import type { Endpoint } from '@gateway/ingest/routing/project';
import type { Wait } from '@gateway/store/deliveries';
import type { AgentContext } from '../config/agent-context.js';
import type { AdaptiveConcurrency } from './adaptive-concurrency.js';
import type { BacklogPacing } from './backlog-pacing.js';
import type { CircuitBreakers } from './circuit-breakers.js';
import { type EndpointQueue, type QueuesInFlight, SLOW_WAITING_MAX } from './endpoint-queue.js';
import type { RateLimits } from './rate-limits.js';

/** How long a slow endpoint's further deliveries wait in Postgres. */
const SLOW_WAIT: Wait = { reason: 'slow', dueInMs: 5_000, spreadMs: 5_000, paceMs: 0 };
const SHORT_BACK_OFF_MS = 2_000;
const BACK_OFF_SPREAD_MAX_MS = 30_000;
/**
 * Deliveries offered to a slow endpoint per second and concurrent request: twice what it can
 * handle.
 */
const OFFERED_PER_SECOND = 2;

/**
 * - `send`: may the next delivery in memory be sent?
 * - `commit`, `claim`: may another delivery come into memory, with its event or from Postgres?
 * - `look`: may those in memory wait there?
 */
export type Question = 'send' | 'commit' | 'claim' | 'look';

/** The gates, in the order in which they are asked. The first that refuses decides. */
const ASKED = {
  send: ['lease', 'pause', 'concurrency', 'share', 'backOff', 'breaker', 'rate'],
  commit: ['backOff', 'breaker', 'rate', 'backlog', 'room'],
  claim: ['pause', 'backOff', 'breaker', 'rate', 'backlog', 'room'],
  look: ['moved', 'backOff', 'breaker', 'rate', 'backlog'],
} as const satisfies Readonly<Record<Question, readonly string[]>>;

type GateName = (typeof ASKED)[Question][number];

export type GateRefusal =
  /** It waits where it is: in memory, or due in Postgres. */
  | { readonly answer: 'keep'; readonly gate: GateName }
  | Postponement
  | { readonly answer: 'discard'; readonly gate: GateName; readonly reason: string };

export interface Postponement {
  readonly answer: 'postpone';
  readonly gate: GateName;
  /** How many deliveries of the endpoint may wait in memory. The others wait in Postgres. */
  readonly keep: number;
  wait(count: number): Wait | number;
}

/**
 * Returns why a delivery does not pass. Called for every delivery, so one that passes allocates
 * nothing.
 *
 * @param waiting deliveries in memory, including the one that would come
 */
export type Gate = (
  endpoint: Endpoint,
  queue: EndpointQueue | undefined,
  question: Question,
  waiting: number,
) => GateRefusal | undefined;

/** The pool of consumers: how many requests may run, and how many do. */
export interface Consumers {
  readonly size: number;
  busy: number;
}

export interface GateParts extends Pick<
  AgentContext,
  'config' | 'configCache' | 'shard' | 'lease' | 'measure'
> {
  readonly consumers: Consumers;
  readonly inFlight: QueuesInFlight;
  readonly circuitBreakers: Pick<
    CircuitBreakers,
    'stateOf' | 'requestProbe' | 'notClosed' | 'backsOffMs' | 'backingOff'
  >;
  readonly concurrency: Pick<AdaptiveConcurrency, 'limitOf'>;
  readonly rateLimits: Pick<RateLimits, 'take' | 'room' | 'slots'>;
  readonly backlogPacing: Pick<BacklogPacing, 'spreadMs' | 'addPostponed'>;
}

export function gatesOf({
  config,
  configCache,
  shard,
  lease,
  consumers,
  inFlight,
  circuitBreakers,
  concurrency,
  rateLimits,
  backlogPacing,
}: GateParts): Readonly<Record<GateName, Gate>> {
  const keep = (gate: GateName): GateRefusal => ({ answer: 'keep', gate });
  const postpone = (gate: GateName, most: number, wait: Postponement['wait']): GateRefusal => ({
    answer: 'postpone',
    gate,
    keep: most,
    wait,
  });
  /** Spreads deliveries over at least the time in which those postponed earlier become due. */
  const spread = (gate: GateName, most: number, { id }: Endpoint, wait: Wait): GateRefusal =>
    postpone(gate, most, () => {
      const spreadMs = backlogPacing.spreadMs(id, performance.now());
      return { ...wait, spreadMs: Math.max(wait.spreadMs, spreadMs) };
    });
  const askToProbe = async (queue: EndpointQueue, endpoint: Endpoint) => {
    queue.probe = 'asked';
    const isGranted = await circuitBreakers.requestProbe(endpoint);
    queue.probe = isGranted ? 'granted' : 'none';
    if (isGranted) inFlight.wake(endpoint.id);
  };
  const [noLease, unreadable, atConcurrency] = [keep('lease'), keep('pause'), keep('concurrency')];
  const [noShare, unproven, noRoom] = [keep('share'), keep('backlog'), keep('room')];
  const toOtherShard = postpone('moved', 0, () => 0);
  const toOthers = postpone('pause', 0, () => 0);
  const untilActive = postpone('pause', 0, () => Infinity);
  return {
    lease: () => (lease.isHeld ? undefined : noLease),

    moved({ projectId }) {
      const project = configCache.projects.get(projectId);
      return project && project.shard !== shard.name ? toOtherShard : undefined;
    },

    pause(endpoint: Endpoint | undefined, _queue, question) {
      if (endpoint?.unreadable) return question === 'send' ? toOthers : unreadable;
      // Claims take the deliveries of endpoints that are inactive or deleted, to discard them.
      if (question === 'claim' || endpoint?.status === 'active') return undefined;
      return endpoint?.status === 'paused'
        ? untilActive
        : { answer: 'discard', gate: 'pause', reason: inactiveReason(endpoint) };
    },

    concurrency: (endpoint, queue) =>
      queue!.sending <
      concurrency.limitOf(endpoint.id, concurrencyOf(endpoint, config), performance.now())
        ? undefined
        : atConcurrency,

    share: (_endpoint, queue) =>
      queue!.hasShare(consumers.size, consumers.size - consumers.busy) ? undefined : noShare,

    backOff(endpoint, _queue, question, waiting) {
      const inMs = circuitBreakers.backsOffMs(endpoint.id);
      // A short back-off ends before deliveries would be back from Postgres.
      const most = inMs < SHORT_BACK_OFF_MS ? SLOW_WAITING_MAX : 0;
      if (inMs === 0 || (waiting <= most && question !== 'send')) return undefined;
      const dueInMs = Math.ceil(inMs);
      return spread('backOff', most, endpoint, {
        reason: 'back_off',
        dueInMs,
        spreadMs: Math.min(Math.round(inMs / 4), BACK_OFF_SPREAD_MAX_MS),
        paceMs: 0,
      });
    },

    breaker(endpoint, queue, question, waiting) {
      const breaker = circuitBreakers.stateOf(endpoint.id);
      if (!breaker) return undefined;
      if (question === 'send' && queue!.probe === 'granted') return undefined;
      const reason = 'breaker';
      if (breaker.state === 'open') {
        // Until it may close, spread over half the time that it was open.
        const [dueInMs, spreadMs] = [Math.ceil(breaker.inMs), Math.round(breaker.openMs / 2)];
        return spread('breaker', 0, endpoint, { reason, dueInMs, spreadMs, paceMs: 0 });
      }
      if (question !== 'send' && waiting <= SLOW_WAITING_MAX) return undefined;
      if (question === 'send' && breaker.state === 'due' && queue!.probe === 'none')
        void askToProbe(queue!, endpoint);
      // Further deliveries wait in Postgres for the outcome of the probe.
      const dueInMs = breaker.state === 'half_open' ? Math.ceil(breaker.inMs) : 1_000;
      const wait: Wait = { reason, dueInMs, spreadMs: 1_000, paceMs: 0 };
      return spread('breaker', SLOW_WAITING_MAX, endpoint, wait);
    },

    rate(endpoint, queue, question, waiting) {
      const { limit, batch } = endpoint;
      if (!limit) return undefined;
      // The limit counts requests.
      const size = batch?.max_events ?? 1;
      const pace = batch ? { ...limit, perSecond: limit.perSecond * size } : limit;
      const most = rateLimits.room(pace);
      const passes =
        question === 'send'
          ? rateLimits.take(endpoint, limit, Math.ceil(waiting / size), performance.now())
          : waiting <= most;
      if (passes) return undefined;
      return postpone('rate', most, (count) => {
        const inMemory = queue?.waiting ?? 0;
        const slots = rateLimits.slots(endpoint, pace, count, inMemory, performance.now());
        return { reason: 'rate_limit', spreadMs: 0, ...slots };
      });
    },

    backlog(endpoint, queue, question, waiting) {
      if (queue?.isSlow(performance.now())) {
        const most = slowRoom(queue, inFlight);
        return waiting <= most ? undefined : spread('backlog', most, endpoint, SLOW_WAIT);
      }
      return question === 'claim' && queue?.isUnproven ? unproven : undefined;
    },

    room: ({ projectId, id: endpointId }, queue) =>
      inFlight.hasRoomFor(queue ?? { projectId, endpointId }) ? undefined : noRoom,
  };
}

export function concurrencyOf(
  { concurrency }: Endpoint,
  { delivery }: GateParts['config'],
): number {
  return concurrency ?? delivery.endpoint_concurrency;
}

/**
 * Returns how many deliveries of a slow endpoint may wait in memory: no more than do if its share is
 * used up, and none if only the reserve is left, which is for endpoints that respond promptly.
 */
function slowRoom(queue: EndpointQueue, inFlight: QueuesInFlight): number {
  if (inFlight.isReserve) return 0;
  return inFlight.hasRoomFor(queue) ? SLOW_WAITING_MAX : Math.min(queue.waiting, SLOW_WAITING_MAX);
}

export interface Refused {
  readonly endpoint: Endpoint;
  readonly refusal: GateRefusal;
}

export class Gates {
  readonly #asked: Readonly<Record<Question, readonly Gate[]>>;

  constructor(
    private readonly options: GateParts,
    gates = gatesOf(options),
  ) {
    const of = (question: Question) => ASKED[question].map((name) => gates[name]);
    this.#asked = { send: of('send'), commit: of('commit'), claim: of('claim'), look: of('look') };
  }

  ask(
    question: Question,
    endpoint: Endpoint | undefined,
    queue = endpoint && this.options.inFlight.queues.get(endpoint.id),
  ): GateRefusal | undefined {
    const coming = question === 'commit' || question === 'claim' ? 1 : 0;
    const waiting = (queue?.waiting ?? 0) + coming;
    const gates = this.#asked[question];
    for (let k = 0; k < gates.length; k++) {
      // A deleted endpoint is refused by `pause`, before the gates that need it.
      const refusal = gates[k]!(endpoint!, queue, question, waiting);
      if (refusal) return refusal;
    }
    return undefined;
  }

  /** @param endpointIds by default those that gates may refuse */
  refused(projectId: string, endpointIds = this.#suspects(projectId)): Refused[] {
    const { configCache } = this.options;
    const refused: Refused[] = [];
    for (const endpointId of endpointIds) {
      const endpoint = configCache.endpoint(projectId, endpointId);
      const refusal = endpoint && this.ask('claim', endpoint);
      if (refusal) refused.push({ endpoint, refusal });
    }
    return refused;
  }

  #suspects(projectId: string): Iterable<string> {
    const { configCache, inFlight, circuitBreakers } = this.options;
    const unreadable = configCache.projects.get(projectId)?.unreadable ?? [];
    const ids = new Set(Array.from(unreadable, ({ id }) => id));
    const held = [...circuitBreakers.notClosed(), ...circuitBreakers.backingOff()];
    for (const it of [...held, ...inFlight.queues.values()])
      if (it.projectId === projectId) ids.add(it.endpointId);
    return ids;
  }

  saturatedQueues(): Pick<EndpointQueue, 'projectId' | 'endpointId'>[] {
    const { inFlight } = this.options;
    const nowMs = performance.now();
    return [...inFlight.queues.values()].filter(
      (queue) => queue.isSlow(nowMs) && queue.waiting >= slowRoom(queue, inFlight),
    );
  }

  /** Returns how long `count` deliveries wait in Postgres, and counts them. */
  postpone(
    endpoint: Endpoint | undefined,
    { wait: of }: Postponement,
    count: number,
  ): Wait | number {
    const wait = of(count);
    if (typeof wait !== 'number') this.countPostponed(endpoint!, wait, count);
    return wait;
  }

  /** Counts deliveries that wait in Postgres, over which the next ones are spread. */
  countPostponed(endpoint: Endpoint, { reason }: Wait, count: number): void {
    const { config, backlogPacing, measure } = this.options;
    measure?.postponed(endpoint, reason, count);
    if (reason === 'rate_limit') return;
    const paceMs = 1_000 / OFFERED_PER_SECOND / concurrencyOf(endpoint, config);
    backlogPacing.addPostponed(endpoint.id, count, paceMs, performance.now());
  }
}
