import type { ActivatedPlugins } from '@gateway/core/plugins';
import { LoopShares, ProjectPace } from '@gateway/core/process';
import { sandboxLimits } from '@gateway/ingest/transform/sandboxes';
import { Sandbox } from '@gateway/sandbox';
import { startUsageCounter } from '@gateway/store/usage';
import { hostname } from 'node:os';
import type { AgentContext } from './config/agent-context.js';
import type { AttemptObserver } from './delivery/attempt-writer.js';
import { wireDelivery } from './delivery/wiring.js';
import { showGauges } from './gauges.js';
import { AgentHeartbeat } from './liveness/heartbeat.js';
import { SuccessStreak } from './liveness/success-streak.js';
import { startSweeps } from './liveness/sweep-deliveries.js';
import { Clock } from './model/clock.js';
import { AgentLease } from './model/lease.js';
import { stopAtDeadline } from './model/stages.js';
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
import { measuring } from './telemetry/measure.js';
import { tracing } from './telemetry/tracing.js';

/** Part of the drain time reserved for closing connections. */
const CLOSING_SECONDS = 3;

interface WiringOptions extends Pick<
  AgentContext,
  'config' | 'log' | 'health' | 'database' | 'kv' | 'configCache' | 'open'
> {
  readonly plugins: ActivatedPlugins;
  readonly mailer?: Mailer | undefined;
}

export type Wiring = ReturnType<typeof wireAgent>;

/** Connects the parts of an agent, last stage first: each receives its successor. */
export function wireAgent({ plugins, mailer, ...given }: WiringOptions) {
  const { config, log, database, configCache } = given;
  const { limits, agent } = config;
  const readsSources = agent.mode !== 'retry';
  const measure = measuring(plugins);
  const [lease, clock, sandbox] = [
    new AgentLease(),
    new Clock(),
    new Sandbox(sandboxLimits(config)),
  ];
  const loopShares = new LoopShares(limits.event_loop_ms);
  const context: AgentContext = {
    ...given,
    lease,
    clock,
    sandbox,
    loopShares,
    measure,
    tracing: tracing(plugins),
  };
  const shared = {
    ...context,
    name: `${hostname()}:${process.pid}`,
    notifier: new Notifier({ ...context, mailer }),
  };

  const usage = startUsageCounter({ pool: database.pool, log });
  const successStreak = new SuccessStreak();
  const recorded: AttemptObserver['recorded'] = (attempts, isOurs) => {
    for (const attempt of attempts)
      if (attempt.status === 'success' && isOurs(attempt)) usage.delivery(attempt.projectId);
  };
  const observers = [{ recorded }, successStreak, shared.notifier, ...(measure ? [measure] : [])];
  const { drainDeliveries, ...delivery } = wireDelivery({ ...shared, observers });
  const held = { ...shared, ...delivery };

  const planner = new DeliveryPlanner({
    ...held,
    routingPace: new ProjectPace(limits.routing_work),
    claimsFirstAttempts: readsSources,
  });
  const router = new PendingRouter({ ...held, planner });
  const ingest = wireSources({
    ...shared,
    plugins,
    usage,
    router: commitRouter({ ...held, planner }),
  });
  const parts = { ...held, ...ingest, planner, successStreak };

  const { sources, drainSources, stopPublishing } = ingest;
  const { claimer, dueTimes, inFlight } = delivery;
  const heartbeat = new AgentHeartbeat({
    ...held,
    router,
    readsSources,
    onRenewed: () => sources.share(),
  });
  configCache.on('gateway_due', (projectId) =>
    projectId === '' ? claimer.checkAll() : dueTimes.add(projectId, 0),
  );
  const stopShowing = measure && showGauges(plugins, parts);
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
      stopAtDeadline(parts);
    };
    const timer = setTimeout(
      giveUp,
      Math.max(0, agent.drain_timeout_seconds - CLOSING_SECONDS) * 1000,
    );
    queues.abort();
    // Nothing comes in afterwards: no message, no pending event, no due delivery.
    await Promise.all([drainSources(), consuming, claimer.stop(), stopSweeps?.()]);
    await heartbeat.stop();
    await drainDeliveries();
    await usage.close();
    stopPublishing();
    stopShowing?.();
    clearTimeout(timer);
  };

  return {
    ...parts,
    heartbeat,
    get isStarting() {
      return readsSources && sources.isStarting;
    },
    get draining() {
      return drained !== undefined;
    },
    start() {
      stopSweeps = startSweeps(context);
      if (!readsSources) return;
      sources.start();
      const consumers = [consumeCreateEvent, consumeMatchSubscriptions, consumeFirstAttempts];
      consuming = Promise.all(
        consumers.map((consume) => consume({ ...held, router }, queues.signal)),
      );
    },
    /**
     * Finishes work stage by stage, and returns waiting deliveries. Near the deadline other agents
     * take the rest.
     */
    drain: (): Promise<void> => (drained ??= drainAll()),
  };
}
