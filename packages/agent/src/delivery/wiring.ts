import { newId } from '@gateway/core/events';
import { ProjectPace, VERSION } from '@gateway/core/process';
import type { Endpoint } from '@gateway/ingest/routing/project';
import { expediteDeliveries } from '@gateway/store/deliveries';
import { RequestBuilder } from '../attempt/build-request.js';
import { GoneEndpoints } from '../attempt/gone-endpoints.js';
import { AttemptRunner } from '../attempt/run-attempt.js';
import { SubscriptionFunctions } from '../attempt/subscription-functions.js';
import type { AgentContext } from '../config/agent-context.js';
import { policyOf } from '../config/breaker-policy.js';
import { BacklogPacing } from '../flow-control/backlog-pacing.js';
import { Backpressure } from '../flow-control/backpressure.js';
import { CircuitBreakers } from '../flow-control/circuit-breakers.js';
import { RateLimits } from '../flow-control/rate-limits.js';
import type { Notifier } from '../notifications/notifier.js';
import { AccessTokens } from '../request/access-tokens.js';
import { RequestSender } from '../request/sender.js';
import { type AttemptObserver, AttemptWriter } from './attempt-writer.js';
import { Claimer } from './claimer.js';
import { DueTimes } from './due-times.js';
import { DeliveriesInFlight } from './in-flight.js';
import { DeliveryReleaser } from './release-deliveries.js';
import { consumersOf, Scheduler } from './scheduler.js';

/** Concurrent statements that record attempts, each on its own connection. */
export const WRITERS = 2;

/** Connects the parts that deliver from Postgres to endpoints and record the attempts. */
export function wireDelivery(
  given: AgentContext & {
    readonly notifier: Notifier;
    readonly observers: readonly AttemptObserver[];
  },
) {
  const { config, open } = given;
  const { delivery, limits } = config;
  const dueTimes = new DueTimes();
  const releaser = new DeliveryReleaser({ ...given, dueTimes });
  const { max_outstanding: maxOutstanding, max_outstanding_bytes: maxOutstandingBytes } = delivery;
  const inFlight = new DeliveriesInFlight({
    ...given,
    releaser,
    maxOutstanding,
    maxOutstandingBytes,
  });
  const flowControl = wireFlowControl({ ...given, inFlight });
  const held = { ...given, ...flowControl, inFlight, dueTimes, releaser };

  const claimer = new Claimer(held);
  const sender = new RequestSender({
    allowedNetworks: delivery.allowed_networks,
    maxResponseBytes: config.max_response_size * 1024,
    lookupsPerProject: delivery.lookups_per_project,
    proxy: delivery.proxy,
    caFile: delivery.ca_file,
  });
  const functions = new SubscriptionFunctions(given);
  const attempts = new AttemptRunner({
    ...given,
    functions,
    sender,
    requests: new RequestBuilder({ open, version: VERSION }),
    accessTokens: new AccessTokens({ sender, open }),
    responsePace: new ProjectPace(limits.response_bytes_per_second, 1),
    goneEndpoints: new GoneEndpoints(given),
  });
  const attemptWriter = new AttemptWriter({ ...held, writers: WRITERS });
  const consumers = consumersOf(config.consumer_pool_size);
  const scheduler = new Scheduler({ ...held, attempts, attemptWriter, consumers });
  /** Lets running requests end and returns waiting deliveries. */
  const drainDeliveries = async (): Promise<void> => {
    functions.stop();
    await scheduler.drain();
    await flowControl.circuitBreakers.stop();
    await attemptWriter.settled();
    await releaser.settled();
  };
  return {
    ...flowControl,
    dueTimes,
    releaser,
    inFlight,
    claimer,
    sender,
    attemptWriter,
    consumers,
    scheduler,
    drainDeliveries,
  };
}

function wireFlowControl(
  given: AgentContext & { readonly notifier: Notifier; readonly inFlight: DeliveriesInFlight },
) {
  const { config, database, log, measure, notifier } = given;
  const backlogPacing = new BacklogPacing({
    log,
    hasten: ({ projectId, id }) =>
      expediteDeliveries(database.pool, { projectId, endpointId: id }, [
        'breaker',
        'lookup',
        'slow',
      ]),
  });
  const observers = measure ? [measure, notifier] : [notifier];
  const policy = (endpoint: Endpoint) => policyOf(endpoint, config);
  const circuitBreakers = new CircuitBreakers({
    ...given,
    name: newId(),
    policyOf: policy,
    backlogPacing,
    observers,
  });
  const backpressure = new Backpressure({
    ...given,
    circuitBreakers,
    rateLimits: new RateLimits(given),
    backlogPacing,
  });
  return { circuitBreakers, backpressure };
}
