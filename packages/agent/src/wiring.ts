import type { ActivatedPlugins } from '@gateway/core/plugins';
import { ProjectPace, type Health } from '@gateway/core/process';
import { EventCreator } from '@gateway/ingest/commit/event-creator';
import { startUsageCounter } from '@gateway/store/usage';
import { hostname } from 'node:os';
import type { AgentContext } from './config/agent-context.js';
import type { AttemptObserver } from './delivery/attempt-writer.js';
import { wireDelivery } from './delivery/wiring.js';
import { AgentHeartbeat } from './liveness/heartbeat.js';
import { SuccessStreak } from './liveness/success-streak.js';
import { startSweeps } from './liveness/sweep-deliveries.js';
import { Clock } from './model/clock.js';
import { AgentLease } from './model/lease.js';
import { stopAtDeadline } from './model/stages.js';
import { ChannelOutbox } from './notifications/channel-outbox.js';
import type { Mailer } from './notifications/mailer.js';
import { Notifier } from './notifications/notifier.js';
import { commitRouter } from './routing/commit-router.js';
import {
  consumeCreateEvent,
  consumeFirstAttempts,
  consumeMatchSubscriptions,
} from './routing/pending-queues.js';
import { PendingRouter } from './routing/pending-router.js';
import { DeliveryPlanner } from './routing/plan-deliveries.js';
import { wireSources } from './sources/wiring.js';
import { IssueCounter } from './telemetry/issue-counter.js';
import { measuring } from './telemetry/measure.js';
import { tracing } from './telemetry/tracing.js';

/** The part of the drain time reserved for closing connections. */
const CLOSING_SECONDS = 3;

/** The parts that the data planes of an agent share. */
export interface AgentParts extends Pick<
  AgentContext,
  'config' | 'log' | 'database' | 'kv' | 'open' | 'sandbox' | 'loopShares' | 'pace'
> {
  readonly health: Health;
  readonly plugins: ActivatedPlugins;
  readonly mailer?: Mailer | undefined;
}

type WiringOptions = Omit<AgentParts, 'health'> &
  Pick<AgentContext, 'health' | 'shard' | 'shardCount' | 'configCache'>;

export type Wiring = ReturnType<typeof wirePlane>;

/** Wires the parts of a data plane, last stage first: each receives its successor. */
export function wirePlane({
  config,
  plugins,
  log,
  health,
  database,
  shard,
  shardCount,
  kv,
  configCache,
  open,
  sandbox,
  loopShares,
  pace,
  mailer,
}: WiringOptions) {
  const data = shard.database;
  const { limits, agent } = config;
  const readsSources = agent.mode !== 'retry';
  const name = `${hostname()}:${process.pid}`;
  const lease = new AgentLease();
  const clock = new Clock();
  const measure = measuring(plugins);
  const traces = tracing(plugins);
  const context: AgentContext = {
    config,
    log,
    health,
    database,
    shard,
    shardCount,
    kv,
    configCache,
    open,
    lease,
    clock,
    sandbox,
    loopShares,
    pace,
    measure,
    tracing: traces,
  };

  const notifier = new Notifier({
    config,
    database,
    shard,
    configCache,
    log,
    health,
    lease,
    mailer,
  });
  const usage = startUsageCounter({ pool: database.pool, log });
  const successStreak = new SuccessStreak();
  const issues = new IssueCounter({ database, log });
  const recorded: AttemptObserver['recorded'] = (attempts, isOurs) => {
    for (const attempt of attempts)
      if (attempt.status === 'success' && isOurs(attempt)) usage.delivery(attempt.projectId);
  };
  const delivery = wireDelivery(context, {
    notifier,
    observers: [{ recorded }, successStreak, issues, notifier, ...(measure ? [measure] : [])],
  });
  const { claimer, dueTimes, inFlight, gates, circuitBreakers, scheduler } = delivery;
  const { attemptWriter, releaser, destination, consumers } = delivery;

  const planner = new DeliveryPlanner({
    inFlight,
    gates,
    dueTimes,
    routingPace: new ProjectPace(limits.routing_work),
    claimsFirstAttempts: readsSources,
  });
  const router = new PendingRouter({
    database: data,
    configCache,
    measure,
    tracing: traces,
    loopShares,
    lease,
    inFlight,
    planner,
  });
  const ingest = wireSources(context, {
    plugins,
    notifier,
    name,
    usage,
    router: commitRouter({ config, configCache, lease, inFlight, planner }),
  });
  const { transformer, eventWriter, sources, lags } = ingest;

  const events = new EventCreator({
    writer: eventWriter,
    configCache,
    database,
    dataOf: () => Promise.resolve(data.pool),
  });
  const channelOutbox = new ChannelOutbox({
    config,
    database,
    shard,
    log,
    open,
    http: destination,
    events,
  });
  configCache.on('gateway_notifications', () => {
    notifier.hurry();
    channelOutbox.hurry();
  });

  const heartbeat = new AgentHeartbeat({
    database: data,
    control: database,
    shard,
    kv,
    configCache,
    lease,
    clock,
    log,
    measure,
    router,
    inFlight,
    scheduler,
    dueTimes,
    claimer,
    name,
    readsSources,
    onRenewed: () => sources.share(),
  });
  configCache.on('gateway_due', (projectId) =>
    projectId === '' ? claimer.checkAll() : dueTimes.add(projectId, 0),
  );

  const queues = new AbortController();
  let consuming: Promise<unknown> | undefined;
  let stopSweeps: (() => Promise<void>) | undefined;
  let drained: Promise<void> | undefined;
  const drainAll = async () => {
    const giveUp = () => {
      log.warn(
        { outstanding: inFlight.size },
        'The drain takes too long; what is unsettled is left to other agents.',
      );
      stopAtDeadline({ transformer, eventWriter, attemptWriter, releaser });
    };
    const timer = setTimeout(
      giveUp,
      Math.max(0, agent.drain_timeout_seconds - CLOSING_SECONDS) * 1000,
    );
    queues.abort();
    // After these have stopped, no message, operational event, pending event or due delivery enters the agent.
    await Promise.all([
      ingest.drainSources(),
      consuming,
      claimer.stop(),
      stopSweeps?.(),
      channelOutbox.close(),
    ]);
    await heartbeat.stop();
    await delivery.drainDeliveries();
    await usage.close();
    await issues.close();
    ingest.stopPublishing();
    clearTimeout(timer);
  };

  return {
    shard,
    lease,
    clock,
    sandbox,
    configCache,
    lags,
    notifier,
    channelOutbox,
    successStreak,
    planner,
    heartbeat,
    dueTimes,
    inFlight,
    circuitBreakers,
    gates,
    claimer,
    scheduler,
    attemptWriter,
    releaser,
    destination,
    consumers,
    transformer,
    eventWriter,
    get isStarting() {
      return readsSources && sources.isStarting;
    },
    get draining() {
      return drained !== undefined;
    },
    start() {
      issues.start();
      stopSweeps = startSweeps({ shard, configCache, log });
      if (!readsSources) return;
      sources.start();
      const parts = { kv, shard, log, tracing: traces, router, inFlight, claimer };
      const consumes = [consumeCreateEvent, consumeMatchSubscriptions, consumeFirstAttempts];
      consuming = Promise.all(consumes.map((consume) => consume(parts, queues.signal)));
    },
    /**
     * Finishes work stage by stage and returns waiting deliveries to Postgres. Work unfinished near
     * the deadline is left to other agents.
     */
    drain: (): Promise<void> => (drained ??= drainAll()),
  };
}
