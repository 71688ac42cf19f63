import type { Config } from '@gateway/core/config';
import { newId } from '@gateway/core/events';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { VERSION, type Health } from '@gateway/core/process';
import { Sandbox } from '@gateway/sandbox';
import { deactivateEndpoint } from '@gateway/store/config';
import { expediteDeliveries, type AttemptRecord, type Wait } from '@gateway/store/deliveries';
import type { Kv } from '@gateway/store/kv';
import { startUsageCounter } from '@gateway/store/usage';
import type { Database } from '@gateway/store/postgres';
import { hostname } from 'node:os';
import { EventWriter } from './commit/event-writer.js';
import type { BreakerPolicy } from './flow-control/circuit-breaker-state.js';
import { BacklogPacing } from './flow-control/backlog-pacing.js';
import { CircuitBreakers } from './flow-control/circuit-breakers.js';
import { Heartbeat } from './liveness/heartbeat.js';
import { Claimer } from './delivery/claimer.js';
import { Scheduler } from './delivery/scheduler.js';
import { SuccessStreak } from './delivery/success-streak.js';
import { DeliveryReleaser } from './delivery/release-deliveries.js';
import { Pipeline } from './ingest/pipeline.js';
import { RateLimits } from './flow-control/rate-limits.js';
import type { Mailer } from './notifications/mailer.js';
import type { Endpoint, ConfigCache } from './config/config-cache.js';
import { Notifier } from './notifications/notifier.js';
import { Overruns, overrunRule } from './ingest/overruns.js';
import { pausing } from './ingest/pause-sources.js';
import { consumeCreateEvent, consumeMatchSubscriptions } from './routing/pending-queues.js';
import { AttemptWriter } from './delivery/attempt-writer.js';
import { resumePaused } from './config/resume-paused.js';
import { RequestBuilder } from './request/build-request.js';
import { pendingRouter } from './routing/pending-router.js';
import { sandboxLimits } from './ingest/sandbox-limits.js';
import { Sender } from './request/sender.js';
import { SourceRunner } from './ingest/source-runner.js';
import { showGauges } from './telemetry/gauges.js';
import { measuring } from './telemetry/measure.js';
import { SourceLags } from './ingest/source-lags.js';
import { Throttle } from './ingest/throttle.js';
import { tracing } from './telemetry/tracing.js';
import { Transformer } from './ingest/transformer.js';

/** Commits of events that are under way at a time, each on a connection of its own. */
export const COMMITTERS = 3;
/** The same for attempts. */
export const WRITERS = 2;
/** What a drain leaves of its time for closing connections. */
const CLOSING_SECONDS = 3;

/** The running way of a message. */
export type Wiring = ReturnType<typeof wireAgent>;

/** Every step of the way of a message, in order, each with what it hands on to. */
export function wireAgent({
  config,
  plugins,
  log,
  health,
  database,
  kv,
  store,
  open,
  mailer,
}: {
  config: Config;
  plugins: ActivatedPlugins;
  log: Log;
  health: Health;
  database: Database;
  kv: Kv;
  store: ConfigCache;
  open: (sealed: string) => string;
  /** Without one nobody is notified by e-mail. */
  mailer?: Mailer | undefined;
}) {
  const { mode } = config.agent;
  const agent = `${hostname()}:${process.pid}`;
  const claimsFirstAttempts = mode !== 'retry';
  const spans = tracing(plugins);
  const measure = measuring(plugins);
  const lags = measure && new SourceLags();
  const agentId = () => heartbeat.id;
  const onScheduled = (projectId: string, dueInMs: number) => claimer.due(projectId, dueInMs);
  /** Endpoints that answered 410, as they were then: requests that are under way answer so too, and each write makes every agent read its store. */
  const gone = new WeakSet<Endpoint>();

  const usage = startUsageCounter({ pool: database.pool, log });
  const notifier = new Notifier({ config, database, store, log, health, agentId, mailer });
  const releaser = new DeliveryReleaser({ database, log });
  const successStreak = new SuccessStreak();
  const attemptWriter: AttemptWriter = new AttemptWriter({
    database,
    log,
    writers: WRITERS,
    measure,
    onRecorded: (attempts: readonly AttemptRecord[]) => {
      // Given up, or under an earlier id of this agent, the delivery may be another agent's now, which counts it.
      const isMine = (attempt: AttemptRecord) => attempt.agentId === agentId() && !attemptWriter.stopped;
      for (const attempt of attempts) {
        if (attempt.dueInMs !== null) claimer.due(attempt.projectId, attempt.dueInMs);
        if (attempt.status === 'success' && isMine(attempt)) usage.delivery(attempt.projectId);
      }
      successStreak.recorded(attempts);
      notifier.recorded(attempts);
      measure?.recorded(attempts, isMine);
      scheduler.recorded(attempts);
    },
  });
  const sender = new Sender({
    allowedNetworks: config.delivery.allowed_networks,
    maxResponseBytes: config.max_response_size * 1024,
    proxy: config.delivery.proxy,
    caFile: config.delivery.ca_file,
  });
  const circuitBreakers = new CircuitBreakers({
    kv,
    log,
    name: newId(),
    policyOf: (endpoint) => policyOf(endpoint, config),
    onChange: (endpointId) => scheduler.reconsider(endpointId),
    onTrip: (trip) => {
      measure?.tripped(trip);
      if (trip.isFirst) notifier.tripped(trip);
    },
    onClose: ({ projectId, endpointId }) => backlogPacing.hasten({ projectId, id: endpointId }, performance.now()),
  });
  const backlogPacing = new BacklogPacing({
    log,
    hasten: ({ projectId, id }) => expediteDeliveries(database.pool, { projectId, endpointId: id }, ['breaker', 'slow']),
  });
  const rateLimits = new RateLimits({ kv, agents: () => heartbeat.agents, onTokens: (endpointId) => scheduler.reconsider(endpointId) });
  const scheduler: Scheduler = new Scheduler({
    store,
    sender,
    requests: new RequestBuilder({ open, version: VERSION }),
    log,
    tracing: spans,
    measure,
    consumers: config.consumer_pool_size,
    endpointConcurrency: config.delivery.endpoint_concurrency,
    maxOutstanding: config.delivery.max_outstanding,
    agentId,
    isLeased: () => heartbeat.isLeased,
    record: (attempt) => attemptWriter.push(attempt),
    circuitBreakers,
    rateLimits,
    backlogPacing,
    onWanted: (projectId) => claimer.due(projectId, 0),
    release: (deliveries, wait) => {
      const { dueInMs, ...put } = typeof wait === 'number' ? { dueInMs: wait } : putOffOver(wait, deliveries.length);
      releaser.push(deliveries, { to: 'due', dueInMs, ...put });
      for (const projectId of new Set(deliveries.map((delivery) => delivery.projectId))) claimer.due(projectId, dueInMs);
    },
    discard: (deliveries, reason) => releaser.push(deliveries, { to: 'discarded', reason }),
    gone: (endpoint: Endpoint) => {
      if (gone.has(endpoint)) return;
      gone.add(endpoint);
      const { projectId, id } = endpoint;
      log.warn({ endpoint_id: id, project_id: projectId }, 'An endpoint answered 410 Gone and is deactivated.');
      const facts = notifier.disabledFacts('The endpoint answered 410 Gone.');
      deactivateEndpoint(database.pool, projectId, id, 'It answered 410 Gone.', facts).then(
        () => notifier.hurry(),
        (error: unknown) => {
          gone.delete(endpoint);
          log.warn(
            { error, project_id: projectId, endpoint_id: id },
            'An endpoint that answered 410 could not be deactivated; its next answer tries again.',
          );
        },
      );
    },
  });
  const claimer: Claimer = new Claimer({ database, store, scheduler, log, agentId, mode, onOverdue: (count) => measure?.recovered(count) });
  const router = pendingRouter({ database, store, scheduler, log, agentId, claimsFirstAttempts, onScheduled, measure, tracing: spans });
  const eventWriter = new EventWriter({
    database,
    kv,
    store,
    scheduler,
    log,
    agentId,
    batchSize: config.ingest.batch_size,
    committers: COMMITTERS,
    idempotencyWindowSeconds: config.ingest.idempotency_window_seconds,
    routeInline: config.ingest.inline_routing,
    claimsFirstAttempts,
    onScheduled,
    onAccepted: ({ projectId, data }) => usage.event(projectId, data),
    onQuarantined: (messages) => measure?.quarantined(messages),
    measure,
  });
  const sandbox = new Sandbox(sandboxLimits(config));
  const pauses = pausing({
    config,
    database,
    store,
    log,
    agent,
    facts: (reason) => notifier.disabledFacts(reason),
    onTold: () => notifier.hurry(),
  });
  const transformer = new Transformer({ sandbox, log, measure, overruns: new Overruns(overrunRule(config)), pause: pauses.pause });
  const throttle = new Throttle({ kv, ratePerSecond: config.instance_ingest_rate, agents: () => heartbeat.agents, log });
  const pipeline = new Pipeline({
    throttle,
    transformer,
    eventWriter,
    maxMessageBytes: config.ingest.max_message_bytes,
    measure,
    tracing: spans,
  });
  const sources = new SourceRunner({
    store,
    pipeline,
    log,
    health,
    plugin: (type) => plugins.sources.get(type),
    known: () => [...plugins.sources.keys()],
    openSecret: open,
    window: config.ingest.window,
    lags,
    letGo: (source) => transformer.letGo(source),
    onChange: (before, after) => transformer.change(before, after),
    onState: (source, state, reason) => notifier.source(source, state, reason),
  });
  const heartbeat: Heartbeat = new Heartbeat({
    database,
    kv,
    store,
    router,
    scheduler,
    claimer,
    log,
    name: agent,
    onRecovered: (count) => measure?.recovered(count),
    onReconciled: (count) => measure?.reconciled(count),
    onReplaced: () => scheduler.releaseWaiting(),
    onRenewed: () => scheduler.resume(),
  });
  store.on('gateway_due', (projectId) => (projectId === '' ? claimer.dueEverywhere() : claimer.due(projectId, 0)));
  const stopReleasing = resumePaused({ database, store, log });
  const stopShowing = lags && showGauges(plugins, { scheduler, circuitBreakers, sandbox, lags, store });
  const queues = new AbortController();
  let consuming: Promise<unknown> = Promise.resolve();

  return {
    sandbox,
    sender,
    claimer,
    heartbeat,
    eventWriter,
    attemptWriter,
    scheduler,
    circuitBreakers,
    successStreak,
    notifier,
    draining: false,
    /** True until the sources are read that there are at the start. */
    get isStarting() {
      return mode !== 'retry' && sources.isStarting;
    },
    start() {
      if (mode === 'retry') return;
      sources.start();
      const options = { kv, router, scheduler, log, tracing: spans };
      consuming = Promise.all([consumeCreateEvent(options, queues.signal), consumeMatchSubscriptions(options, queues.signal)]);
    },
    /**
     * Stops reading, lets the commits that are under way end (their messages are acknowledged), and then lets the requests that are under way end;
     * what waits goes back to Postgres for other agents. `forced` ends what hangs when the deadline of the process is near.
     */
    async drain(this: { draining: boolean }) {
      this.draining = true;
      const forced = setTimeout(
        () => {
          log.warn({ outstanding: scheduler.outstanding }, 'The drain takes too long; what is unsettled is left to other agents.');
          transformer.stop();
          eventWriter.stop();
          attemptWriter.stop();
          releaser.stop();
        },
        Math.max(0, config.agent.drain_timeout_seconds - CLOSING_SECONDS) * 1000,
      );
      queues.abort();
      stopReleasing();
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
      clearTimeout(forced);
    },
  };
}

/** What giving back takes of a wait: one after the other comes to the same as by chance over the time that they take together. */
function putOffOver({ reason, dueInMs, spreadMs, paceMs }: Wait, count: number) {
  return { dueInMs, reason, spreadMs: Math.round(spreadMs + paceMs * count) };
}

/** What the settings say of circuit breakers, and the project of the endpoint over them; undefined: the endpoint has none. */
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
