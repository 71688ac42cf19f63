import type { Config } from '@gateway/core/config';
import { sealer } from '@gateway/core/crypto';
import { explainKvError, kvReason } from '@gateway/core/errors';
import { metricsResponse, serveMetrics, showProcess } from '@gateway/core/exposition';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { Health, Lifecycle, LoopShares, missingExtra, TokenBuckets } from '@gateway/core/process';
import type { OpenIntake } from '@gateway/ingest/intake';
import { ConfigCache } from '@gateway/ingest/routing/config-cache';
import { openStores, watchStores } from '@gateway/ingest/stores';
import { sandboxLimits } from '@gateway/ingest/transform/sandboxes';
import { Sandbox } from '@gateway/sandbox';
import { convertChannels } from '@gateway/store/config';
import { openKv, retryKv, type Kv } from '@gateway/store/kv';
import { hostname } from 'node:os';
import { stopAtWrongKey } from './config/require-key.js';
import { consumersOf } from './delivery/scheduler.js';
import { WRITERS } from './delivery/wiring.js';
import { showGauges } from './gauges.js';
import { reportProcessHealth } from './liveness/health.js';
import { serveHttp } from './liveness/http-server.js';
import { startControlUpkeep } from './liveness/maintenance.js';
import { startMoves } from './liveness/moves.js';
import type { Mailer } from './notifications/mailer.js';
import { processParts } from './process-parts.js';
import { openWorker } from './shard-worker.js';
import { COMMITTERS } from './sources/wiring.js';
import { Workers } from './workers.js';

interface AgentOptions {
  readonly config: Config;
  readonly plugins: ActivatedPlugins;
  readonly log: Log;
  /** Replaces the configured KV client, so that the components of `gateway dev` share one. */
  readonly kv?: Kv;
  /** Opens the HTTP intake. If omitted, the agent accepts no events over HTTP. */
  readonly intake?: OpenIntake;
}

/** Beyond those of the event and attempt writers. */
const OTHER_CONNECTIONS = 4;
const KV_PATIENCE_MS = 3_000;
/** The interval at which the configuration version is read, to keep routing current. */
const VERIFY_MS = 2_000;

/**
 * Starts an agent: what it has once, and a worker for each shard. `close` drains it: it stops
 * reading, finishes in-flight work, and releases the remaining deliveries.
 *
 * @throws GatewayError if a setting is missing, Postgres or KV is unreachable, a migration is
 *   pending, or the port is taken
 */
export async function startAgent({
  config,
  plugins,
  log,
  kv: givenKv,
  intake: openIntake,
}: AgentOptions): Promise<{ port: number; leave(): void; close(): Promise<void> }> {
  const secrets = sealer(config.encryption_key);
  const { open } = secrets;
  const isArchiving = config.retention.enabled && config.archive.url !== undefined;
  const missing = isArchiving && missingExtra('@gateway/archive', 'archive.url');
  if (missing) throw missing;
  const lifecycle = new Lifecycle(log);
  const drainTimeoutMs = config.agent.drain_timeout_seconds * 1000;
  const close = () => lifecycle.close({ deadlineMs: drainTimeoutMs });
  try {
    const health = new Health();
    const poolSize = Math.max(
      config.database.max_open_connections,
      COMMITTERS + WRITERS + OTHER_CONNECTIONS,
    );
    lifecycle.add('process series', showProcess(plugins, 'agent'));
    const stores = await openStores(config, { name: 'gateway-agent', poolSize, log, open });
    lifecycle.add('stores', () => stores.close());
    const { database, shards } = stores;
    const kv = givenKv ?? (await openReachableKv(config, log));
    if (!givenKv) lifecycle.add('kv', () => kv.close());
    const watched = { config, plugins, log, kv, name: 'gateway-agent', poolSize: 1 };
    await watchStores(stores, watched, lifecycle);
    const sandbox = new Sandbox(sandboxLimits(config));
    lifecycle.add('sandbox', () => sandbox.close());
    const only = config.agent.shards.length > 0 ? config.agent.shards : undefined;
    const configCache = new ConfigCache(database, {
      intervalMs: config.agent.interval_seconds * 1000,
      eventLoopMs: config.limits.event_loop_ms,
      verifyMs: VERIFY_MS,
      shards: only,
      log,
    });
    const workers: Workers = new Workers({
      shards,
      configCache,
      health,
      log,
      only,
      open: (shard) => openWorker(shard, parts),
    });
    const parts = processParts({
      config,
      plugins,
      log,
      health,
      database,
      kv,
      configCache,
      open,
      sandbox,
      loopShares: new LoopShares(config.limits.event_loop_ms),
      pace: new TokenBuckets(config.limits.events_per_second),
      name: `${hostname()}:${process.pid}`,
      mailer: await mailerOf(config, log),
      workers,
    });
    lifecycle.add('config cache', () => configCache.close());
    await configCache.start();
    lifecycle.add('parts', () => parts.close());
    lifecycle.add('health', reportProcessHealth(parts));
    lifecycle.add('workers', () => workers.close());
    await workers.open();
    // The encryption key cannot change while this agent is registered.
    const converted = await convertChannels(database.knex, secrets);
    if (converted.length > 0)
      log.info({ channels: converted }, 'Endpoints were made of notification channels.');
    stopAtWrongKey({
      ...parts,
      async stop() {
        for (const { inFlight } of workers.running) inFlight.close();
        await workers.close();
      },
    });
    if (plugins.metrics)
      lifecycle.add(
        'gauges',
        showGauges(plugins, parts, () => workers.running),
      );
    const intake =
      config.agent.mode === 'retry'
        ? undefined
        : openIntake?.({ ...parts, shards, writer: workers.writer() }, lifecycle);
    const metrics = metricsResponse({ config, plugins, log });
    const { pulladdr: address } = config.agent;
    if (address !== undefined) {
      const place = { address, key: 'agent.pulladdr', env: 'GATEWAY_AGENT_PULLADDR' };
      const apart = await serveMetrics(place, metrics);
      lifecycle.add('metrics', () => apart.close());
    }
    const http = await serveHttp(workers, { config, health, plugins, metrics, intake });
    lifecycle.add('http', () => http.close());
    lifecycle.add('upkeep', startControlUpkeep(config, { pool: database.sessions, log }));
    lifecycle.add('moves', startMoves(shards, log));
    lifecycle.add('notifications', () => parts.notifier.close());
    lifecycle.add('pipeline', () => workers.drain(parts.stop()));
    lifecycle.add('intake', () => http.drain());
    parts.start();
    workers.start();
    log.info(
      {
        port: http.port,
        mode: config.agent.mode,
        consumers: consumersOf(config.consumer_pool_size),
        sources: configCache.sources.length,
      },
      'The agent is ready.',
    );
    return { port: http.port, leave: () => http.leave(), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function mailerOf(config: Config, log: Log): Promise<Mailer | undefined> {
  const { url, provider, from } = config.smtp;
  if (from === undefined && url === undefined && provider === undefined) return undefined;
  // Imported only when used, because the mailer is slow to load.
  const { createMailer, mailsAreSent } = await import('./notifications/mailer.js');
  if (mailsAreSent(config)) return createMailer(config);
  log.warn(
    {},
    `No notifications are sent by email: ${from === undefined ? 'smtp.from' : 'smtp.url'} is not set.`,
  );
  return undefined;
}

async function openReachableKv(config: Config, log: Log): Promise<Kv> {
  let last: unknown;
  let isReady = false;
  // Failures after the first successful ping are reported by health.
  const kv = openKv(config.kv, (error) => {
    if (!isReady && !last)
      log.warn({ reason: kvReason(error, config.kv) }, 'KV does not answer yet; trying again.');
    last = error;
  });
  try {
    await retryKv(() => kv.ping(), KV_PATIENCE_MS);
    isReady = true;
    return kv;
  } catch (error) {
    await kv.close();
    throw explainKvError(last ?? error, config.kv);
  }
}
