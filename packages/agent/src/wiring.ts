import type { Config } from '@gateway/core/config';
import type { Open } from '@gateway/core/crypto';
import { newId } from '@gateway/core/events';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { LoopShares, ProjectPace, VERSION } from '@gateway/core/process';
import { Sandbox } from '@gateway/sandbox';
import { expediteDeliveries } from '@gateway/store/deliveries';
import { startUsageCounter } from '@gateway/store/usage';
import { hostname } from 'node:os';
import { EventWriter } from '@gateway/ingest/commit/event-writer';
import type { AgentContext } from './config/agent-context.js';
import { policyOf } from './config/breaker-policy.js';
import { type AttemptObserver, AttemptWriter } from './delivery/attempt-writer.js';
import { AttemptRunner, GoneEndpoints, RequestBuilder } from './delivery/attempt.js';
import { Claimer } from './delivery/claimer.js';
import { consumersOf, Scheduler } from './delivery/scheduler.js';
import { DueTimes } from './delivery/due-times.js';
import { SubscriptionFunctions } from './delivery/subscription-functions.js';
import { InFlight } from './delivery/in-flight.js';
import { DeliveryReleaser } from './delivery/release-deliveries.js';
import { SuccessStreak } from './liveness/health.js';
import { BacklogPacing, Backpressure } from './flow-control/backpressure.js';
import { CircuitBreakers } from './flow-control/circuit-breakers.js';
import { RateLimits } from './flow-control/rate-limits.js';
import { showGauges } from './gauges.js';
import { overrunRule, Overruns } from '@gateway/ingest/transform/overruns';
import { pausing } from './sources/pause-sources.js';
import { Throttle } from './flow-control/throttle.js';
import { Pipeline } from '@gateway/ingest/pipeline';
import { publishLags } from './sources/publish-lags.js';
import { SourceLags } from './sources/source-watch.js';
import { SourceRunner } from './sources/source-runner.js';
import { sandboxLimits } from '@gateway/ingest/transform/sandboxes';
import { Transformer } from '@gateway/ingest/transform/transformer';
import { Heartbeat } from './liveness/heartbeat.js';
import { startSweeps } from './liveness/sweep-deliveries.js';
import { Clock } from './model/clock.js';
import { AgentLease } from './model/lease.js';
import { stopAtDeadline } from './model/stages.js';
import type { Mailer } from './notifications/mailer.js';
import { Notifier } from './notifications/notifier.js';
import { AccessTokens } from './request/access-tokens.js';
import { Sender } from './request/sender.js';
import { commitRouter } from './routing/commit-router.js';
import { consumeCreateEvent, consumeFirstAttempts, consumeMatchSubscriptions } from './routing/pending-queues.js';
import { PendingRouter } from './routing/pending-router.js';
import { DeliveryPlanner } from './routing/plan-deliveries.js';
import { measuring } from './telemetry/measure.js';
import { tracing as openTracing } from './telemetry/tracing.js';

/** Commits of events under way at a time, each on its own connection. */
export const COMMITTERS = 3;
export const WRITERS = 2;
/** What a drain leaves of its time for closing connections. */
const CLOSING_SECONDS = 3;

export interface WiringOptions extends Pick<AgentContext, 'config' | 'log' | 'health' | 'database' | 'kv' | 'configCache'> {
  readonly plugins: ActivatedPlugins;
  readonly open: Open;
  readonly mailer?: Mailer | undefined;
}

export type Wiring = ReturnType<typeof wireAgent>;

/** Builds the parts of an agent. A message passes `sources`, `pipeline`, `transformer`, `eventWriter`, `inFlight`, `scheduler`, `attempts`, `attemptWriter`. */
export function wireAgent({ plugins, open, mailer, ...given }: WiringOptions) {
  const { config, log, database, configCache } = given;
  const readsSources = config.agent.mode !== 'retry';
  const { delivery, ingest } = config;
  const name = `${hostname()}:${process.pid}`;
  const lease = new AgentLease();
  const clock = new Clock();
  const measure = measuring(plugins);
  const context: AgentContext = { ...given, lease, clock, measure, tracing: openTracing(plugins) };
  const usage = startUsageCounter({ pool: database.pool, log });
  const notifier = new Notifier({ ...context, mailer });

  const dueTimes = new DueTimes();
  const loopShares = new LoopShares(config.limits.event_loop_ms);
  const releaser = new DeliveryReleaser({ ...context, dueTimes });
  const { max_outstanding: maxOutstanding, max_outstanding_bytes: maxOutstandingBytes } = delivery;
  const inFlight = new InFlight({ lease, releaser, maxOutstanding, maxOutstandingBytes });

  const backlogPacing = new BacklogPacing({
    log,
    hasten: ({ projectId, id }) => expediteDeliveries(database.pool, { projectId, endpointId: id }, ['breaker', 'lookup', 'slow']),
  });
  const circuitBreakers = new CircuitBreakers({
    ...context,
    name: newId(),
    policyOf: (endpoint) => policyOf(endpoint, config),
    inFlight,
    backlogPacing,
    observers: measure ? [measure, notifier] : [notifier],
  });
  const rateLimits = new RateLimits({ ...context, inFlight });
  const backpressure = new Backpressure({ ...context, inFlight, circuitBreakers, rateLimits, backlogPacing });

  // Deliveries: from Postgres to the endpoint, and the attempt back to Postgres.
  const held = { ...context, inFlight, dueTimes, backpressure };
  const claimer = new Claimer({ ...held, releaser });
  const successStreak = new SuccessStreak();
  const billing: AttemptObserver = {
    recorded(attempts, isOurs) {
      for (const attempt of attempts) if (attempt.status === 'success' && isOurs(attempt)) usage.delivery(attempt.projectId);
    },
  };
  const observers = [billing, successStreak, notifier, ...(measure ? [measure] : [])];
  const attemptWriter = new AttemptWriter({ ...held, observers, writers: WRITERS });
  const sender = new Sender({
    allowedNetworks: delivery.allowed_networks,
    maxResponseBytes: config.max_response_size * 1024,
    lookupsPerProject: delivery.lookups_per_project,
    proxy: delivery.proxy,
    caFile: delivery.ca_file,
  });
  const requests = new RequestBuilder({ open, version: VERSION });
  const accessTokens = new AccessTokens({ sender, open });
  const sandbox = new Sandbox(sandboxLimits(config));
  const functions = new SubscriptionFunctions({ ...context, sandbox });
  const attempts = new AttemptRunner({
    ...context,
    functions,
    sender,
    requests,
    accessTokens,
    responsePace: new ProjectPace(config.limits.response_bytes_per_second, 1),
    goneEndpoints: new GoneEndpoints({ ...context, notifier }),
  });
  const consumers = consumersOf(config.consumer_pool_size);
  const scheduler = new Scheduler({ ...held, attempts, attemptWriter, releaser, loopShares, consumers });

  // Messages: from the source to the commit.
  const routingPace = new ProjectPace(config.limits.routing_work);
  const planner = new DeliveryPlanner({ ...held, routingPace, claimsFirstAttempts: readsSources });
  const router = new PendingRouter({ ...held, planner, loopShares });
  const pace = new ProjectPace(config.limits.events_per_second);
  const eventWriter = new EventWriter({
    ...context,
    router: commitRouter({ ...held, planner }),
    pace,
    usage,
    committers: COMMITTERS,
  });
  const pauses = pausing({ ...context, agent: name, notifier });
  const transformer = new Transformer({ ...context, sandbox, overruns: new Overruns(overrunRule(config)), pause: pauses.pause });
  const throttle = new Throttle({ ...context, ratePerSecond: config.instance_ingest_rate });
  const pipeline = new Pipeline({
    ...context,
    throttle,
    transformer,
    eventWriter,
    pace,
    loopShares,
    maxMessageBytes: ingest.max_message_bytes,
    accepts: (projectId, eventType) => configCache.accepts(projectId, eventType),
  });
  const lags = new SourceLags();
  const sources = new SourceRunner({
    ...context,
    pipeline,
    transformer,
    notifier,
    plugins: plugins.sources,
    openSecret: open,
    window: windowOf(config),
    maxWorkers: config.limits.workers_per_project,
    lags,
    countLost: measure && ((labels, messages) => plugins.meter.add('gateway_source_lost_messages_total', { ...labels }, messages)),
  });

  const heartbeat = new Heartbeat({ ...held, router, scheduler, claimer, name, readsSources, onRenewed: () => sources.share() });
  configCache.on('gateway_due', (projectId) => (projectId === '' ? claimer.checkAll() : dueTimes.add(projectId, 0)));
  const stopPublishing = publishLags({ ...context, lags });
  const stopShowing = measure && showGauges(plugins, { ...held, circuitBreakers, sandbox, lags });
  const queues = new AbortController();
  let stopSweeps: (() => Promise<void>) | undefined;
  let consuming: Promise<unknown> = Promise.resolve();

  let drained: Promise<void> | undefined;
  const drainAll = async () => {
    const giveUp = () => {
      log.warn({ outstanding: inFlight.size }, 'The drain takes too long; what is unsettled is left to other agents.');
      stopAtDeadline({ transformer, eventWriter, attemptWriter, releaser });
    };
    const timer = setTimeout(giveUp, Math.max(0, config.agent.drain_timeout_seconds - CLOSING_SECONDS) * 1000);
    queues.abort();
    const sweeping = stopSweeps?.();
    pauses.close();
    const claiming = claimer.stop();
    pipeline.stop();
    await sources.stop();
    await claiming;
    await consuming;
    await heartbeat.stop();
    await sweeping;
    functions.stop();
    await scheduler.drain();
    await circuitBreakers.stop();
    await attemptWriter.settled();
    await releaser.settled();
    await usage.close();
    stopPublishing();
    stopShowing?.();
    clearTimeout(timer);
  };

  return {
    ...held,
    pace,
    sandbox,
    sender,
    planner,
    claimer,
    heartbeat,
    transformer,
    eventWriter,
    attemptWriter,
    releaser,
    consumers,
    scheduler,
    circuitBreakers,
    notifier,
    successStreak,
    draining: false,
    get isStarting() {
      return readsSources && sources.isStarting;
    },
    start() {
      stopSweeps = startSweeps(context);
      if (!readsSources) return;
      sources.start();
      const options = { ...held, router, claimer };
      consuming = Promise.all(
        [consumeCreateEvent, consumeMatchSubscriptions, consumeFirstAttempts].map((consume) => consume(options, queues.signal)),
      );
    },
    /**
     * Stops reading, lets the commits under way end (their messages are acknowledged), then the requests that are being sent; what waits goes back to Postgres for
     * other agents. Whatever hangs is ended when the deadline of the process is near.
     */
    drain(this: { draining: boolean }): Promise<void> {
      this.draining = true;
      return (drained ??= drainAll());
    },
  };
}

/** Messages that a project may not have accepted within a second would only fill the memory of the agent. */
function windowOf({ ingest, limits }: Pick<Config, 'ingest' | 'limits'>): number {
  return limits.events_per_second === 0 ? ingest.window : Math.min(ingest.window, limits.events_per_second);
}
