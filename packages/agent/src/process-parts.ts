import { newId } from '@gateway/core/events';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import type { Health } from '@gateway/core/process';
import { EventCreator } from '@gateway/ingest/commit/event-creator';
import type { EventWriter } from '@gateway/ingest/commit/event-writer';
import { startUsageCounter } from '@gateway/ingest/commit/usage-counter';
import type { Shard } from '@gateway/store/shards';
import type { ProcessContext } from './config/agent-context.js';
import { policyOf } from './config/breaker-policy.js';
import type { AttemptObserver } from './delivery/attempt-writer.js';
import type { Claimer } from './delivery/claimer.js';
import type { DueTimes } from './delivery/due-times.js';
import type { DeliveriesInFlight } from './delivery/in-flight.js';
import type { DeliveryParts } from './delivery/wiring.js';
import type { BacklogPacing } from './flow-control/backlog-pacing.js';
import { CircuitBreakers } from './flow-control/circuit-breakers.js';
import type { Destination } from './model/destination.js';
import type { AgentLease } from './model/lease.js';
import { startScheduledEvents } from './liveness/scheduled-events.js';
import { SuccessStreak } from './liveness/success-streak.js';
import { Announcer } from './notifications/announcer.js';
import type { Mailer } from './notifications/mailer.js';
import { Notifier } from './notifications/notifier.js';
import { pausing } from './sources/pause-sources.js';
import type { SourceParts } from './sources/wiring.js';
import { IssueCounter } from './telemetry/issue-counter.js';
import { measuring } from './telemetry/measure.js';
import { tracing } from './telemetry/tracing.js';

interface RunningWorker {
  readonly shard: Pick<Shard, 'name' | 'database'>;
  readonly lease: Pick<AgentLease, 'agentId' | 'readers'>;
  readonly inFlight: Pick<DeliveriesInFlight, 'wake'>;
  readonly backlogPacing: Pick<BacklogPacing, 'expedite'>;
  readonly claimer: Pick<Claimer, 'checkAll'>;
  readonly destination: Pick<Destination, 'shortage'>;
  readonly dueTimes: Pick<DueTimes, 'add'>;
}

interface AgentWorkers {
  readonly running: readonly RunningWorker[];
  ofProject(projectId: string): readonly RunningWorker[];
  writer(): Pick<EventWriter, 'push'>;
}

export interface ProcessOptions extends Omit<ProcessContext, 'measure' | 'tracing'> {
  readonly health: Health;
  readonly plugins: ActivatedPlugins;
  /** Without a mailer, notifications appear in the log and in operational events. */
  readonly mailer?: Mailer | undefined;
  readonly name: string;
  readonly workers: AgentWorkers;
}

export interface ProcessParts
  extends ProcessContext, DeliveryParts, SourceParts, Pick<ProcessOptions, 'health' | 'name'> {
  readonly successStreak: SuccessStreak;
  readonly destination: Pick<Destination, 'shortage'>;
  readonly notifier: Notifier;
  start(): void;
  /** Ends pauses and operational events: the workers get no more of either. */
  stop(): Promise<void>;
  /** Writes what was counted. Call when no worker runs any more. */
  close(): Promise<void>;
}

export function processParts({ workers, mailer, ...given }: ProcessOptions): ProcessParts {
  const { config, plugins, log, database, kv, configCache, name } = given;
  const measure = measuring(plugins);
  const events = new EventCreator({ writer: workers.writer(), configCache, database });
  let stopScheduled: (() => Promise<void>) | undefined;
  const announcer = new Announcer({
    database,
    configCache,
    log,
    events,
    shards: () => workers.running.map(({ shard }) => shard),
  });
  const notifier = new Notifier({
    ...given,
    announcer,
    mailer,
    leaseOf: (shard) => workers.running.find((it) => it.shard.name === shard)?.lease,
  });
  const usage = startUsageCounter({ pool: database.pool, log });
  const issues = new IssueCounter({ database, log });
  const successStreak = new SuccessStreak();
  const recorded: AttemptObserver['recorded'] = (attempts, isOurs) => {
    for (const attempt of attempts)
      if (attempt.status === 'success' && isOurs(attempt)) usage.delivery(attempt.projectId);
  };
  const circuitBreakers = new CircuitBreakers({
    kv,
    log,
    name: newId(),
    policyOf: (endpoint) => policyOf(endpoint, config),
    inFlight: {
      wake(endpointId) {
        for (const { inFlight } of workers.running) inFlight.wake(endpointId);
      },
    },
    backlogPacing: {
      expedite(endpoint, nowMs) {
        for (const { backlogPacing } of workers.ofProject(endpoint.projectId))
          backlogPacing.expedite(endpoint, nowMs);
      },
    },
    observers: measure ? [measure, notifier] : [notifier],
  });
  const pauses = pausing({ config, database, configCache, log, name, notifier });
  configCache.on('gateway_notifications', () => notifier.hurry());
  configCache.on('gateway_due', (projectId) => {
    for (const { claimer, dueTimes } of workers.ofProject(projectId))
      if (projectId === '') claimer.checkAll();
      else dueTimes.add(projectId, 0);
  });
  return {
    ...given,
    measure,
    tracing: tracing(plugins),
    notifier,
    usage,
    successStreak,
    observers: [{ recorded }, successStreak, issues, notifier, ...(measure ? [measure] : [])],
    destination: {
      get shortage() {
        return workers.running.find(({ destination }) => destination.shortage)?.destination
          .shortage;
      },
    },
    circuitBreakers,
    pauses,
    start() {
      notifier.start();
      issues.start();
      const shards = () => workers.running.map(({ shard }) => shard.name);
      stopScheduled = startScheduledEvents({ database, events, shards, log });
    },
    async stop() {
      pauses.close();
      await stopScheduled?.();
      await announcer.close();
    },
    async close() {
      await circuitBreakers.stop();
      await usage.close();
      await issues.close();
    },
  };
}
