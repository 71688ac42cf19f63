import { TokenBuckets } from '@gateway/core/process';
import { expediteDeliveries } from '@gateway/store/deliveries';
import { GoneEndpoints } from '../attempt/gone-endpoints.js';
import { AttemptRunner } from '../attempt/run-attempt.js';
import { SubscriptionFunctions } from '../attempt/subscription-functions.js';
import type { AgentContext } from '../config/agent-context.js';
import { HttpDestination } from '../destinations/http/http-destination.js';
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

/** Opens what sends over HTTP, which signs with the time of `clock`. */
export function openDestination({
  config: {
    delivery,
    limits: { response_bytes_per_second: responseBytes },
    max_response_size,
  },
  open,
  clock,
}: Pick<AgentContext, 'config' | 'open' | 'clock'>): HttpDestination {
  return new HttpDestination({
    open,
    clock,
    responsePace: new TokenBuckets(responseBytes, responseBytes),
    allowedNetworks: delivery.allowed_networks,
    maxResponseBytes: max_response_size * 1024,
    lookupsPerProject: delivery.lookups_per_project,
    proxy: delivery.proxy,
    noProxy: delivery.no_proxy,
    caFile: delivery.ca_file,
  });
}

/** The parts that the workers of an agent share to deliver. */
export interface DeliveryParts {
  readonly notifier: Notifier;
  readonly circuitBreakers: CircuitBreakers;
  readonly observers: readonly AttemptObserver[];
}

/** Wires the parts that deliver from the Postgres of a shard to endpoints and record the attempts. */
export function wireDelivery(
  {
    config,
    log,
    database,
    shard,
    buckets,
    configCache,
    open,
    sandbox,
    loopShares,
    lease,
    clock,
    measure,
    tracing,
  }: AgentContext,
  { notifier, circuitBreakers, observers }: DeliveryParts,
) {
  const { delivery } = config;
  const { database: data, planes } = shard;

  const dueTimes = new DueTimes();
  const releaser = new DeliveryReleaser({ database: data, log, dueTimes });
  const inFlight = new DeliveriesInFlight({
    lease,
    releaser,
    maxOutstanding: delivery.max_outstanding,
    maxOutstandingBytes: delivery.max_outstanding_bytes,
  });

  const backlogPacing = new BacklogPacing({
    log,
    hasten: ({ projectId, id: endpointId }) =>
      expediteDeliveries(planes, { projectId, endpointId }, [
        'breaker',
        'lookup',
        'shortage',
        'slow',
      ]),
  });
  const rateLimits = new RateLimits({ buckets, lease, inFlight });
  const consumers = { size: consumersOf(config.consumer_pool_size), busy: 0 };
  const gates = new Gates({
    config,
    configCache,
    shard,
    measure,
    lease,
    consumers,
    inFlight,
    circuitBreakers,
    rateLimits,
    backlogPacing,
  });

  const claimer = new Claimer({
    config,
    database: data,
    shard,
    configCache,
    lease,
    log,
    measure,
    inFlight,
    gates,
    dueTimes,
    releaser,
  });
  const functions = new SubscriptionFunctions({ configCache, database, log, sandbox });
  const destination = openDestination({ config, open, clock });
  const attempts = new AttemptRunner({
    log,
    clock,
    lease,
    measure,
    tracing,
    functions,
    destination,
    goneEndpoints: new GoneEndpoints({ database, log, notifier }),
  });
  const attemptWriter = new AttemptWriter({
    database: data,
    log,
    measure,
    lease,
    inFlight,
    dueTimes,
    observers,
    writers: WRITERS,
  });
  const scheduler = new Scheduler({
    configCache,
    log,
    loopShares,
    inFlight,
    gates,
    circuitBreakers,
    rateLimits,
    backlogPacing,
    attempts,
    attemptWriter,
    releaser,
    dueTimes,
    consumers,
  });

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
    scheduler,
    drainDeliveries,
  };
}
