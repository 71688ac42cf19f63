import { Lifecycle } from '@gateway/core/process';
import { ConfigCache } from '@gateway/ingest/routing/config-cache';
import { startBacklogSamples } from '@gateway/store/counts/backlog';
import { startCountUpdates } from '@gateway/store/counts/count-deltas';
import { requireReady } from '@gateway/store/postgres';
import { migratedAs, type Shard } from '@gateway/store/shards';
import type { AgentContext } from './config/agent-context.js';
import { requireKey, stopAtWrongKey } from './config/require-key.js';
import { reportHealth } from './liveness/health.js';
import { startMaintenance } from './liveness/maintenance.js';
import { planeHealth } from './model/plane-health.js';
import { wirePlane, type AgentParts, type Wiring } from './wiring.js';

/** The data plane of one shard: it reads the sources of its projects and sends their deliveries. */
export interface Plane {
  readonly wiring: Wiring;
  /** Starts to read sources and to send. */
  start(): void;
  /** Drains, ends the lease and closes what the plane has opened. */
  close(): Promise<void>;
}

/** The interval at which the configuration version is read, to keep routing current. */
const VERIFY_MS = 2_000;

/**
 * Opens the data plane of a shard and takes its lease. Planes share nothing but the process: one whose Postgres is away
 * does not delay the others.
 *
 * @throws GatewayError if the shard is unreachable or lacks a migration, or the encryption key is
 *   wrong
 */
export async function openPlane(
  shard: Shard,
  agent: AgentParts & Pick<AgentContext, 'shardCount'>,
): Promise<Plane> {
  const parts = { ...agent, shard, health: planeHealth(agent.health, shard.name) };
  const { config, log, database, plugins, open } = parts;
  const lifecycle = new Lifecycle(log);
  const close = () => lifecycle.close({ deadlineMs: config.agent.drain_timeout_seconds * 1000 });
  try {
    await requireReady(shard.database, shard.settings, log, migratedAs(shard));
    const configCache = new ConfigCache(database, {
      intervalMs: config.agent.interval_seconds * 1000,
      eventLoopMs: config.limits.event_loop_ms,
      verifyMs: VERIFY_MS,
      shard: shard.name,
      log,
    });
    const wiring = wirePlane({ ...parts, configCache });
    lifecycle.add('config cache', () => configCache.close());
    await configCache.start();

    await wiring.heartbeat.start();
    lifecycle.add('heartbeat', () => wiring.heartbeat.leave());
    // The encryption key may have changed before this agent registered, so the secrets are read
    // again and checked. It cannot change while an agent is registered.
    await configCache.refresh();
    requireKey(configCache.projects.values(), open);
    const stop = async () => {
      wiring.inFlight.close();
      await wiring.drain();
      await wiring.heartbeat.leave();
    };
    stopAtWrongKey({ ...parts, configCache, stop });
    lifecycle.add('destination', () => wiring.destination.close());
    lifecycle.add('health', reportHealth(wiring, { ...parts, configCache }));
    const { sessions } = shard.database;
    lifecycle.add(
      'maintenance',
      await startMaintenance(config, {
        planes: { shard: shard.name, control: database.sessions, data: sessions },
        log,
        meter: plugins.meter,
        isMailing: wiring.notifier.isMailing,
      }),
    );
    lifecycle.add(
      'counts',
      startCountUpdates({ pool: sessions, log, agents: () => wiring.lease.agents }),
    );
    lifecycle.add('backlog', startBacklogSamples({ pool: sessions, log }));
    lifecycle.add('notifications', () => wiring.notifier.close());
    lifecycle.add('pipeline', () => wiring.drain());
    const start = () => {
      wiring.notifier.start();
      wiring.channelOutbox.start();
      wiring.start();
    };
    return { wiring, start, close };
  } catch (error) {
    await close();
    throw error;
  }
}
