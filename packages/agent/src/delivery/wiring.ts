import { TokenBuckets } from '@gateway/core/process';
import { expediteDeliveries, notifyDue } from '@gateway/store/deliveries';
import { writeLoweredLimits } from '@gateway/store/kv';
import { GoneEndpoints } from '../attempt/gone-endpoints.js';
import { AttemptRunner } from '../attempt/run-attempt.js';
import { SubscriptionFunctions } from '../attempt/subscription-functions.js';
import { BatchRunner } from '../batches/batch-runner.js';
import { BatchCollector } from '../batches/next-batch.js';
import type { AgentContext } from '../config/agent-context.js';
import { HttpDestination } from '../destinations/http/http-destination.js';
import { AdaptiveConcurrency } from '../flow-control/adaptive-concurrency.js';
import { BacklogPacing } from '../flow-control/backlog-pacing.js';
import type { CircuitBreakers } from '../flow-control/circuit-breakers.js';
import { Gates } from '../flow-control/gates.js';
import { RateLimits } from '../flow-control/rate-limits.js';
import type { Notifier } from '../notifications/notifier.js';
import { type AttemptObserver, AttemptWriter } from './attempt-writer.js';
import { Claimer } from './claimer.js';
import { DueTimes } from './due-times.js';
import { DeliveriesInFlight } from './in-flight.js';
import { DeliveryReleaser } from './release-deliveries.js';
import { consumersOf, Scheduler } from './scheduler.js';

/** The number of concurrent statements that record attempts, each on its own connection. */
export const WRITERS = 2;

function openDestination({
  config,
  open,
  clock,
}: Pick<AgentContext, 'config' | 'open' | 'clock'>): HttpDestination {
  const { delivery, max_response_size } = config;
  const { response_bytes_per_second: responseBytes } = config.limits;
  return new HttpDestination({
    open,
    clock,
    texts: config,
    responsePace: new TokenBuckets(responseBytes, responseBytes),
    allowedNetworks: delivery.allowed_networks,
    maxResponseBytes: max_response_size * 1024,
    lookupsPerProject: delivery.lookups_per_project,
    proxy: delivery.proxy,
    noProxy: delivery.no_proxy,
    caFile: delivery.ca_file,
  });
}

export interface DeliveryParts {
  readonly notifier: Notifier;
  readonly circuitBreakers: CircuitBreakers;
  readonly observers: readonly AttemptObserver[];
}

export function wireDelivery(
  context: AgentContext,
  { notifier, circuitBreakers, observers }: DeliveryParts,
) {
  const { config, database, kv, log, lease, buckets } = context;
  const { database: data, planes } = context.shard;
  const onShard = { ...context, database: data, circuitBreakers };

  const dueTimes = new DueTimes();
  const releaser = new DeliveryReleaser({ database: data, log, dueTimes });
  const inFlight = new DeliveriesInFlight({
    lease,
    releaser,
    maxOutstanding: config.delivery.max_outstanding,
    maxOutstandingBytes: config.delivery.max_outstanding_bytes,
  });

  const backlogPacing = new BacklogPacing({
    log,
    expedite: ({ projectId, id: endpointId }) =>
      expediteDeliveries(planes, { projectId, endpointId }, [
        'back_off',
        'breaker',
        'lookup',
        'shortage',
        'slow',
      ]),
  });
  const rateLimits = new RateLimits({ buckets, lease, inFlight });
  const consumers = { size: consumersOf(config.consumer_pool_size), busy: 0 };
  const concurrency = new AdaptiveConcurrency();
  const gates = new Gates({
    ...onShard,
    consumers,
    concurrency,
    inFlight,
    rateLimits,
    backlogPacing,
  });

  const claimer = new Claimer({ ...onShard, inFlight, gates, dueTimes, releaser });
  const functions = new SubscriptionFunctions(context);
  const destination = openDestination(context);
  const goneEndpoints = new GoneEndpoints({ database, log, notifier });
  const attempts = new AttemptRunner({ ...context, functions, destination, goneEndpoints });
  const attemptWriter = new AttemptWriter({
    ...onShard,
    inFlight,
    dueTimes,
    observers,
    writers: WRITERS,
    turned:
      config.agent.mode === 'retry'
        ? (turns) => notifyDue(database.pool, [...new Set(turns.map(({ projectId }) => projectId))])
        : undefined,
  });
  const scheduler = new Scheduler({
    ...onShard,
    inFlight,
    gates,
    concurrency,
    rateLimits,
    backlogPacing,
    attempts,
    batches: new BatchRunner({ ...context, destination, attempts }),
    collector: new BatchCollector(inFlight),
    attemptWriter,
    releaser,
    dueTimes,
    consumers,
  });

  /** For the management API. */
  const publishLimits = (): void => {
    writeLoweredLimits(kv, concurrency.lowered()).catch((error: unknown) =>
      log.debug({ error }, 'KV is unavailable: the management API cannot show concurrency.'),
    );
  };

  /** Stops sending, waits until running requests are recorded, and returns waiting deliveries. */
  const drainDeliveries = async (): Promise<void> => {
    functions.stop();
    await scheduler.drain();
    await attemptWriter.settled();
    await releaser.settled();
  };
  return {
    dueTimes,
    releaser,
    inFlight,
    backlogPacing,
    gates,
    claimer,
    destination,
    attemptWriter,
    consumers,
    concurrency,
    scheduler,
    publishLimits,
    drainDeliveries,
  };
}
