import type { Config } from '@gateway/core/config';
import { newId } from '@gateway/core/events';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { type Health, VERSION } from '@gateway/core/process';
import { Sandbox } from '@gateway/sandbox';
import { expediteDeliveries } from '@gateway/store/deliveries';
import type { Kv } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';
import { startUsageCounter, type UsageCounter } from '@gateway/store/usage';
import { hostname } from 'node:os';
import { EventWriter } from './commit/event-writer.js';
import type { ConfigCache, Endpoint } from './config/config-cache.js';
import { resumePaused } from './config/resume-paused.js';
import { type AttemptObserver, AttemptWriter } from './commit/attempt-writer.js';
import { AttemptRunner, GoneEndpoints } from './delivery/attempt.js';
import { Claimer } from './delivery/claimer.js';
import { DueTimes } from './delivery/due-times.js';
import { InFlight } from './delivery/in-flight.js';
import { DeliveryReleaser } from './delivery/release-deliveries.js';
import { Scheduler } from './delivery/scheduler.js';
import { SuccessStreak } from './delivery/success-streak.js';
import { BacklogPacing, Backpressure } from './flow-control/backpressure.js';
import type { BreakerPolicy } from './flow-control/circuit-breaker-state.js';
import { CircuitBreakers } from './flow-control/circuit-breakers.js';
import { RateLimits } from './flow-control/rate-limits.js';
import { showGauges } from './gauges.js';
import { overrunRule, Overruns, pausing } from './ingest/pause-sources.js';
import { Pipeline, Throttle } from './ingest/pipeline.js';
import { SourceLags, SourceRunner } from './ingest/source-runner.js';
import { sandboxLimits, Transformer } from './ingest/transformer.js';
import { Heartbeat } from './liveness/heartbeat.js';
import { AgentLease } from './model/lease.js';
import type { Mailer } from './notifications/mailer.js';
import { Notifier } from './notifications/notifier.js';
import { RequestBuilder } from './request/build-request.js';
import { Sender } from './request/sender.js';
import { consumeCreateEvent, consumeMatchSubscriptions } from './routing/pending-queues.js';
import { PendingRouter } from './routing/pending-router.js';
import { DeliveryPlanner } from './routing/plan-deliveries.js';
import { measuring } from './telemetry/measure.js';
import { tracing as openTracing } from './telemetry/tracing.js';

/** Commits of events under way at a time, each on its own connection. */
export const COMMITTERS = 3;
/** The same for attempts. */
export const WRITERS = 2;
/** What a drain leaves of its time for closing connections. */
const CLOSING_SECONDS = 3;

export interface WiringOptions {
  readonly config: Config;
  readonly plugins: ActivatedPlugins;
  readonly log: Log;
  readonly health: Health;
  readonly database: Database;
  readonly kv: Kv;
  readonly store: ConfigCache;
  /** Opens a sealed secret. */
  readonly open: (sealed: string) => string;
  /** Undefined: no e-mail is sent. */
  readonly mailer?: Mailer | undefined;
}

/** The running parts of an agent. */
export type Wiring = ReturnType<typeof wireAgent>;

/**
 * Builds the parts of an agent in the order of their dependencies. A message passes `sources`, `pipeline`, `transformer`, `eventWriter`, `inFlight`, `scheduler`,
 * `attempts` and `attemptWriter`.
 */
export function wireAgent({ config, plugins, log, health, database, kv, store, open, mailer }: WiringOptions) {
  const { mode } = config.agent;
  const name = `${hostname()}:${process.pid}`;
  const tracing = openTracing(plugins);
  const measure = measuring(plugins);
  const lease = new AgentLease();
  const usage = startUsageCounter({ pool: database.pool, log });
  const notifier = new Notifier({ config, database, store, log, health, agentId: () => lease.agentId, mailer });

  // What this agent holds, and when it claims more.
  const dueTimes = new DueTimes();
  const releaser = new DeliveryReleaser({ database, dueTimes, log });
  const { max_outstanding: maxOutstanding, endpoint_concurrency: endpointConcurrency } = config.delivery;
  const inFlight = new InFlight({ lease, releaser, maxOutstanding });

  // How fast endpoints get their deliveries.
  const backlogPacing = new BacklogPacing({ log, hasten: (endpoint) => hasten(database, endpoint) });
  const circuitBreakers = new CircuitBreakers({
    kv,
    log,
    name: newId(),
    policyOf: (endpoint) => policyOf(endpoint, config),
    inFlight,
    backlogPacing,
    observers: measure ? [measure, notifier] : [notifier],
  });
  const rateLimits = new RateLimits({ kv, lease, inFlight });
  const backpressure = new Backpressure({ store, inFlight, circuitBreakers, rateLimits, backlogPacing, endpointConcurrency, measure });

  // Deliveries: from Postgres to the endpoint, and the attempt back to Postgres.
  const claimer = new Claimer({ database, store, inFlight, backpressure, dueTimes, lease, log, mode, measure });
  const successStreak = new SuccessStreak();
  const attemptWriter = new AttemptWriter({
    database,
    log,
    writers: WRITERS,
    lease,
    inFlight,
    dueTimes,
    observers: [deliveredUsage(usage), successStreak, notifier, ...(measure ? [measure] : [])],
    measure,
  });
  const sender = new Sender({
    allowedNetworks: config.delivery.allowed_networks,
    maxResponseBytes: config.max_response_size * 1024,
    proxy: config.delivery.proxy,
    caFile: config.delivery.ca_file,
  });
  const requests = new RequestBuilder({ open, version: VERSION });
  const goneEndpoints = new GoneEndpoints({ database, log, notifier });
  const attempts = new AttemptRunner({ sender, requests, goneEndpoints, log, tracing, measure });
  const consumers = config.consumer_pool_size;
  const scheduler = new Scheduler({ store, inFlight, backpressure, attempts, attemptWriter, releaser, dueTimes, lease, log, consumers });

  // Messages: from the source to the commit.
  const planner = new DeliveryPlanner({ inFlight, backpressure, dueTimes, claimsFirstAttempts: mode !== 'retry' });
  const router = new PendingRouter({ database, store, inFlight, planner, lease, measure, tracing });
  const eventWriter = new EventWriter({
    config,
    database,
    kv,
    store,
    inFlight,
    planner,
    lease,
    usage,
    log,
    committers: COMMITTERS,
    measure,
  });
  const sandbox = new Sandbox(sandboxLimits(config));
  const pauses = pausing({ config, database, store, log, agent: name, notifier });
  const transformer = new Transformer({ sandbox, log, measure, overruns: new Overruns(overrunRule(config)), pause: pauses.pause });
  const throttle = new Throttle({ kv, ratePerSecond: config.instance_ingest_rate, lease, log });
  const { max_message_bytes: maxMessageBytes, window } = config.ingest;
  const pipeline = new Pipeline({ throttle, transformer, eventWriter, maxMessageBytes, measure, tracing });
  const lags = measure && new SourceLags();
  const sources = new SourceRunner({
    store,
    pipeline,
    transformer,
    notifier,
    plugins: plugins.sources,
    log,
    health,
    openSecret: open,
    window,
    lags,
  });

  const heartbeat = new Heartbeat({ database, kv, store, router, inFlight, scheduler, dueTimes, claimer, lease, log, name, measure });
  store.on('gateway_due', (projectId) => (projectId === '' ? claimer.checkAll() : dueTimes.add(projectId, 0)));
  const stopResuming = resumePaused({ database, store, log });
  const stopShowing = lags && showGauges(plugins, { inFlight, backpressure, circuitBreakers, sandbox, lags, store });
  const queues = new AbortController();
  let consuming: Promise<unknown> = Promise.resolve();

  return {
    lease,
    sandbox,
    sender,
    dueTimes,
    inFlight,
    backpressure,
    planner,
    router,
    claimer,
    heartbeat,
    eventWriter,
    attemptWriter,
    scheduler,
    circuitBreakers,
    notifier,
    successStreak,
    draining: false,
    /** True until the sources that exist at the start are read. */
    get isStarting() {
      return mode !== 'retry' && sources.isStarting;
    },
    start() {
      if (mode === 'retry') return;
      sources.start();
      const options = { kv, router, inFlight, log, tracing };
      consuming = Promise.all([consumeCreateEvent(options, queues.signal), consumeMatchSubscriptions(options, queues.signal)]);
    },
    /**
     * Stops reading, lets the commits under way end (their messages are acknowledged), then the requests that are being sent; what waits goes back to Postgres for
     * other agents. Whatever hangs is ended when the deadline of the process is near.
     */
    async drain(this: { draining: boolean }) {
      this.draining = true;
      const giveUp = () => {
        log.warn({ outstanding: inFlight.size }, 'The drain takes too long; what is unsettled is left to other agents.');
        for (const part of [transformer, eventWriter, attemptWriter, releaser]) part.stop();
      };
      const timer = setTimeout(giveUp, Math.max(0, config.agent.drain_timeout_seconds - CLOSING_SECONDS) * 1000);
      queues.abort();
      stopResuming();
      pauses.close();
      const claiming = claimer.stop();
      pipeline.stop();
      await sources.stop();
      await claiming;
      await consuming;
      await heartbeat.stop();
      await scheduler.drain();
      await circuitBreakers.stop();
      await attemptWriter.settled();
      await releaser.settled();
      await usage.close();
      stopShowing?.();
      clearTimeout(timer);
    },
  };
}

/** Makes deliveries of an endpoint due that were postponed because it was slow or cut off. */
function hasten({ pool }: Database, { projectId, id }: Pick<Endpoint, 'projectId' | 'id'>): Promise<number> {
  return expediteDeliveries(pool, { projectId, endpointId: id }, ['breaker', 'slow']);
}

/** Counts successful deliveries for billing. */
function deliveredUsage(usage: UsageCounter): AttemptObserver {
  return {
    recorded(attempts, isOurs) {
      for (const attempt of attempts) if (attempt.status === 'success' && isOurs(attempt)) usage.delivery(attempt.projectId);
    },
  };
}

/** The circuit breaker policy of the settings, overridden by the project of the endpoint; undefined: the endpoint has no breaker. */
function policyOf({ circuitBreaker: own }: Endpoint, { circuit_breaker: settings }: Config): BreakerPolicy | undefined {
  const percent = own?.failure_threshold ?? settings.failure_threshold;
  if (percent === 0) return undefined;
  const openMs = (own?.error_timeout ?? settings.error_timeout) * 1000;
  return {
    threshold: percent / 100,
    minimumRequests: own?.minimum_request_count ?? settings.minimum_request_count,
    windowMs: (own?.observability_window ?? settings.observability_window) * 60_000,
    openMs,
    openMaxMs: Math.max(openMs, settings.max_error_timeout * 1000),
  };
}
