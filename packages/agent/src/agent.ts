import type { Config } from '@gateway/core/config';
import { sealer } from '@gateway/core/crypto';
import { explainKvError, kvReason } from '@gateway/core/errors';
import { showProcess } from '@gateway/core/exposition';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { Health, Lifecycle, LoopShares, ProjectPace } from '@gateway/core/process';
import type { OpenIntake } from '@gateway/ingest/intake';
import { openStores, watchStores } from '@gateway/ingest/stores';
import { sandboxLimits } from '@gateway/ingest/transform/sandboxes';
import { Sandbox } from '@gateway/sandbox';
import { openKv, retryKv, type Kv } from '@gateway/store/kv';
import { WRITERS } from './delivery/wiring.js';
import { showGauges } from './gauges.js';
import { serveHttp } from './liveness/http-server.js';
import { startControlUpkeep } from './liveness/maintenance.js';
import { startMoves } from './liveness/moves.js';
import type { Mailer } from './notifications/mailer.js';
import { AgentPlanes } from './planes.js';
import { COMMITTERS } from './sources/wiring.js';

interface AgentOptions {
  readonly config: Config;
  readonly plugins: ActivatedPlugins;
  readonly log: Log;
  /** Replaces the configured KV client, so that the components of `gateway dev` share one. */
  readonly kv?: Kv;
  /** Opens the HTTP intake. If omitted, the agent accepts no events over HTTP. */
  readonly intake?: OpenIntake;
}

/** Database connections beyond those of the event and attempt writers. */
const OTHER_CONNECTIONS = 4;
const KV_PATIENCE_MS = 3_000;

/**
 * Starts the data planes of this process. `close` drains them: they stop reading, finish in-flight
 * work, and release the remaining deliveries.
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
  const { open } = sealer(config.encryption_key);
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
    const name = 'gateway-agent';
    const stores = await openStores(config, { name, poolSize, log, open });
    lifecycle.add('stores', () => stores.close());
    const { database, shards } = stores;
    const kv = givenKv ?? (await openReachableKv(config, log));
    if (!givenKv) lifecycle.add('kv', () => kv.close());
    await watchStores(stores, { config, plugins, log, kv, name, poolSize: 1 }, lifecycle);
    const sandbox = new Sandbox(sandboxLimits(config));
    lifecycle.add('sandbox', () => sandbox.close());
    const pace = new ProjectPace(config.limits.events_per_second);
    const planes = new AgentPlanes({
      shards,
      only: config.agent.shards.length > 0 ? config.agent.shards : undefined,
      parts: {
        config,
        plugins,
        log,
        health,
        database,
        kv,
        open,
        sandbox,
        loopShares: new LoopShares(config.limits.event_loop_ms),
        pace,
        mailer: await mailerOf(config, log),
      },
    });
    lifecycle.add('planes', () => planes.close());
    const { wiring } = await planes.open();
    if (plugins.metrics)
      lifecycle.add(
        'gauges',
        showGauges(plugins, sandbox, () => planes.running.map(({ wiring }) => wiring)),
      );
    const { config: configCache } = planes;
    const intake =
      config.agent.mode === 'retry'
        ? undefined
        : openIntake?.(
            {
              config,
              database,
              shards,
              kv,
              plugins,
              log,
              configCache,
              pace,
              writer: planes.writer(),
              sandbox,
            },
            lifecycle,
          );
    const http = await serveHttp(planes, { config, health, plugins, log, intake });
    lifecycle.add('http', () => http.close());
    lifecycle.add('upkeep', startControlUpkeep(config, { pool: database.sessions, log }));
    lifecycle.add('moves', startMoves(shards, log));
    lifecycle.add('pipeline', () => planes.drain());
    lifecycle.add('intake', () => http.drain());
    planes.start();
    const { consumers, lease } = wiring;
    log.info(
      {
        agent_id: lease.agentId,
        port: http.port,
        mode: config.agent.mode,
        consumers: consumers.size,
        sources: wiring.configCache.sources.length,
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
