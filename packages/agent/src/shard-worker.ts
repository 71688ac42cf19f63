import { Lifecycle, TokenBuckets } from '@gateway/core/process';
import { useShard } from '@gateway/ingest/stores';
import { kvFallback, SharedBuckets } from '@gateway/store/kv';
import type { Shard } from '@gateway/store/shards';
import type { AgentContext } from './config/agent-context.js';
import { requireKey } from './config/require-key.js';
import { wireDelivery } from './delivery/wiring.js';
import { startBacklogSamples, startCountUpdates } from './liveness/counts.js';
import { reportShardHealth } from './liveness/health.js';
import { AgentHeartbeat } from './liveness/heartbeat.js';
import { startMaintenance } from './liveness/maintenance.js';
import { startSweeps } from './liveness/sweep-deliveries.js';
import { Clock } from './model/clock.js';
import { AgentLease } from './model/lease.js';
import { shardHealth } from './model/shard-health.js';
import { stopAtDeadline } from './model/stages.js';
import type { ProcessParts } from './process-parts.js';
import {
  consumeCreateEvent,
  consumeFirstAttempts,
  consumeMatchSubscriptions,
} from './routing/pending-queues.js';
import { PendingRouter } from './routing/pending-router.js';
import { DeliveryPlanner } from './routing/plan-deliveries.js';
import { wireSources } from './sources/wiring.js';

/** The part of the drain time reserved for closing connections. */
const CLOSING_SECONDS = 3;
/** Nobody waits for a token of KV, and a busy agent may read the answer late. */
const KV_MS = 5_000;

export type ShardWorker = ReturnType<typeof wireWorker>;

export interface OpenWorker {
  readonly worker: ShardWorker;
  close(): Promise<void>;
}

/**
 * Opens the worker of a shard and takes its lease. Call `start` to read and send.
 *
 * @throws GatewayError if the shard is unreachable or lacks a migration, or the encryption key is
 *   wrong
 */
export async function openWorker(shard: Shard, parts: ProcessParts): Promise<OpenWorker> {
  const { config, configCache, log, plugins, database, notifier, open } = parts;
  const lifecycle = new Lifecycle(log);
  const close = () => lifecycle.close({ deadlineMs: config.agent.drain_timeout_seconds * 1000 });
  try {
    await useShard(shard, log);
    const worker = wireWorker(shard, parts);
    await worker.heartbeat.start();
    lifecycle.add('heartbeat', () => worker.heartbeat.leave());
    // The encryption key may have changed before this agent registered, so the secrets are read
    // again and checked. It cannot change while an agent is registered.
    await configCache.refresh();
    requireKey(configCache.projects.values(), open);
    lifecycle.add('destination', () => worker.destination.close());
    lifecycle.add('health', reportShardHealth(worker, worker));
    const { sessions } = shard.database;
    lifecycle.add(
      'maintenance',
      await startMaintenance(config, {
        planes: { shard: shard.name, control: database.sessions, data: sessions },
        log,
        meter: plugins.meter,
        isMailing: notifier.isMailing,
      }),
    );
    lifecycle.add(
      'counts',
      startCountUpdates({ pool: sessions, log, agents: () => worker.lease.agents }),
    );
    lifecycle.add('backlog', startBacklogSamples({ pool: sessions, log }));
    lifecycle.add('pipeline', () => worker.drain());
    return { worker, close };
  } catch (error) {
    await close();
    throw error;
  }
}

export function wireWorker(shard: Shard, parts: ProcessParts) {
  const { config, log, kv, configCache, database } = parts;
  const { limits, agent } = config;
  const readsSources = agent.mode !== 'retry';
  const data = shard.database;
  const lease = new AgentLease();
  const context: AgentContext = {
    ...parts,
    shard,
    lease,
    clock: new Clock(),
    health: shardHealth(parts.health, shard.name),
    buckets: new SharedBuckets({
      kv: kvFallback(kv, {
        place: config.kv,
        log,
        meanwhile: 'this agent keeps to its share of instance_ingest_rate and of rate limits',
        timeoutMs: KV_MS,
      }),
      sharers: () => lease.agents,
    }),
  };

  const delivery = wireDelivery(context, parts);
  const { claimer, dueTimes, inFlight, gates, scheduler } = delivery;
  const { attemptWriter, releaser } = delivery;
  const planner = new DeliveryPlanner({
    configCache,
    lease,
    inFlight,
    gates,
    dueTimes,
    batchSize: config.ingest.batch_size,
    routingPace: new TokenBuckets(limits.routing_work),
    claimsFirstAttempts: readsSources,
  });
  const onShard = { ...context, database: data };
  const router = new PendingRouter({ ...onShard, inFlight, planner });
  const ingest = wireSources(context, { ...parts, router: planner });
  const { transformer, eventWriter, sources } = ingest;
  const heartbeat = new AgentHeartbeat({
    ...onShard,
    control: database,
    router,
    inFlight,
    scheduler,
    dueTimes,
    claimer,
    name: parts.name,
    readsSources,
    onRenewed() {
      sources.share();
      delivery.publishLimits();
    },
  });

  const queues = new AbortController();
  let consuming: Promise<unknown> | undefined;
  let stopSweeps: (() => Promise<void>) | undefined;
  let drained: Promise<void> | undefined;
  const drainAll = async (others: Promise<unknown> | undefined) => {
    const giveUp = () => {
      log.warn(
        { outstanding: inFlight.size },
        'Draining took too long; other agents take over what is unfinished.',
      );
      stopAtDeadline({ transformer, eventWriter, attemptWriter, releaser });
    };
    const timer = setTimeout(
      giveUp,
      Math.max(0, agent.drain_timeout_seconds - CLOSING_SECONDS) * 1000,
    );
    queues.abort();
    // After these have stopped, no message, pending event or due delivery enters the worker.
    await Promise.all([ingest.drainSources(), consuming, claimer.stop(), stopSweeps?.(), others]);
    await heartbeat.stop();
    await delivery.drainDeliveries();
    ingest.stopPublishing();
    clearTimeout(timer);
  };

  return {
    ...context,
    ...delivery,
    ...ingest,
    planner,
    heartbeat,
    get isStarting() {
      return readsSources && sources.isStarting;
    },
    start() {
      stopSweeps = startSweeps({ shard, configCache, log, dueTimes });
      if (!readsSources) return;
      sources.start();
      const queued = { ...context, router, inFlight, claimer };
      const consumes = [consumeCreateEvent, consumeMatchSubscriptions, consumeFirstAttempts];
      consuming = Promise.all(consumes.map((consume) => consume(queued, queues.signal)));
    },
    /**
     * Finishes work stage by stage and returns waiting deliveries to Postgres. Work unfinished near
     * the deadline is left to other agents.
     *
     * @param others the end of what else creates events, which are still delivered
     */
    drain: (others?: Promise<unknown>): Promise<void> => (drained ??= drainAll(others)),
  };
}
