import { linksOf, serverChecks, type Config } from '@gateway/core/config';
import { sealer } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import { metricsResponse, serveMetrics, showProcess } from '@gateway/core/exposition';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { Lifecycle, TokenBuckets, repeat } from '@gateway/core/process';
import { EventWriter } from '@gateway/ingest/commit/event-writer';
import { ShardedWriter } from '@gateway/ingest/commit/sharded-writer';
import { ConfigCache } from '@gateway/ingest/routing/config-cache';
import { Matcher } from '@gateway/ingest/routing/matcher';
import { shardFinder } from '@gateway/ingest/routing/shard-of';
import { unclaimedRouter } from '@gateway/ingest/routing/unclaimed-router';
import { startUsageCounter } from '@gateway/ingest/commit/usage-counter';
import { openStores, useOtherShards, watchStores } from '@gateway/ingest/stores';
import { notifyDue } from '@gateway/store/deliveries';
import { encodeSignal } from '@gateway/store/events';
import { openKv, queueOf, retryKv, type Kv } from '@gateway/store/kv';
import { createApp } from './api/app.js';
import { openConvoy } from './api/dialect.js';
import { openOidc } from './auth/oidc/provider.js';
import { startBilling } from './billing.js';
import { openContext, type AppContext } from './api/context.js';
import { serveDashboard } from './dashboard.js';
import { hasDocs, serveDocs } from './docs.js';
import { ingestRouter } from './ingest/ingest.js';
import { inTurn, serve } from './listener.js';
import { documentRouter } from './openapi/pages.js';
import { jwksRouter } from './routes/endpoints/jwks.js';
import { routes } from './routes/index.js';
import { readTlsPair, tlsFiles } from './tls.js';

/** Running requests get ten seconds of it. */
const CLOSE_MS = 30_000;
const COMMITTERS = 2;
/** Keeps routing current. */
const VERIFY_MS = 1_000;
const PROBE_MS = 2_000;
/** The first requests can then use KV. */
const KV_PATIENCE_MS = 500;

export interface ServerOptions {
  readonly config: Config;
  readonly plugins: ActivatedPlugins;
  readonly log: Log;
  /** In `gateway dev`, server and agent share one KV. */
  readonly kv?: Kv;
}

/**
 * Throws if a setting is wrong, Postgres is unreachable, a migration is pending or the port is in
 * use.
 */
export async function startServer({
  config,
  plugins,
  log,
  kv: givenKv,
}: ServerOptions): Promise<{ port: number; url: string; leave(): void; close(): Promise<void> }> {
  const problems = serverChecks(config);
  if (problems.length > 0) throw new GatewayError('invalid_settings', { problems });
  const seals = sealer(config.encryption_key);
  const links = linksOf(config);
  const files = tlsFiles(config.server.http);
  const tls = files && { files, inUse: readTlsPair(files) };
  const oidc = await openOidc({ config, sealer: seals, links, log });
  const lifecycle = new Lifecycle(log);
  const close = () => lifecycle.close({ deadlineMs: CLOSE_MS });
  try {
    if (oidc) lifecycle.add('oidc', () => oidc.close());
    const pools = { poolSize: config.database.max_open_connections, name: 'gateway-server' };
    lifecycle.add('process series', showProcess(plugins, 'server'));
    // The server starts and works without KV.
    const kv = givenKv ?? openKv(config.kv, () => undefined);
    if (!givenKv) lifecycle.add('kv', () => kv.close());
    const connecting = retryKv(() => kv.ping(), KV_PATIENCE_MS).catch(() => undefined);
    const stores = await openStores(config, { ...pools, log, open: seals.open });
    lifecycle.add('stores', () => stores.close());
    const { database, shards } = stores;
    await useOtherShards(shards, log);
    const replicas = await watchStores(stores, { config, plugins, log, kv, ...pools }, lifecycle);
    const configCache = new ConfigCache(database, {
      intervalMs: config.agent.interval_seconds * 1000,
      verifyMs: VERIFY_MS,
      eventLoopMs: config.limits.event_loop_ms,
      log,
    });
    lifecycle.add('config cache', () => configCache.close());
    await configCache.start();
    const usage = startUsageCounter({ pool: database.pool, log });
    lifecycle.add('usage', () => usage.close());
    const billing = startBilling({ config, database, log });
    if (billing) lifecycle.add('billing', () => billing.close());
    const pace = new TokenBuckets(config.limits.events_per_second);
    const matcher = new Matcher(new TokenBuckets(config.limits.routing_work));
    const writer = new ShardedWriter({
      shardOf: shardFinder(configCache, database),
      writerOf: async (shard) => {
        await shards.find(shard);
        return new EventWriter({
          config,
          shard,
          // Read for each commit, because a shard can get another address.
          database: {
            get pool() {
              return shards.of(shard).database.pool;
            },
          },
          kv,
          log,
          router: unclaimedRouter({
            configCache,
            matcher,
            due: (events) => signalDue({ kv, database, log, shard }, events),
          }),
          pace,
          usage,
          committers: COMMITTERS,
        });
      },
    });
    lifecycle.add('event writer', () => writer.stop());
    let closing = false;
    const context = openContext(
      {
        config,
        database,
        replicas,
        shards,
        kv,
        plugins,
        log,
        links,
        seals,
        oidc,
        billing,
        configCache,
        pace,
        writer,
      },
      lifecycle,
    );
    // Health then knows of an outage before it is asked.
    const probing = repeat(() => context.probeHealth().then(() => PROBE_MS), {
      retryMs: PROBE_MS,
      failed: () => undefined,
    });
    lifecycle.add('health probes', probing);
    const pages = {
      ingest: ingestRouter(context),
      keys: jwksRouter(config, configCache.projects),
      convoy: await openConvoy(),
      documents: documentRouter(routes, {
        rootPath: config.root_path,
        hasBasic: context.auth.credentials.basic,
      }),
      docs: serveDocs(config.root_path),
      dashboard: config.dashboard.enabled
        ? serveDashboard(
            config.root_path,
            config.portal.frame_ancestors,
            config.dashboard.stylesheet,
            hasDocs(),
          )
        : undefined,
    };
    const app = createApp(routes, pages, context, () => closing).callback();
    if (config.server.pulladdr !== undefined) {
      const place = {
        address: config.server.pulladdr,
        key: 'server.pulladdr',
        env: 'GATEWAY_PULLADDR',
      };
      const metrics = await serveMetrics(place, metricsResponse(context));
      lifecycle.add('metrics', () => metrics.close());
    }
    await connecting;
    const listener = await serve(
      inTurn((request, response) => void app(request, response)),
      { config, tls, log },
    );
    lifecycle.add('http', () => {
      closing = true;
      return listener.close();
    });
    const leave = () => {
      closing = true;
      listener.leave();
    };
    return { port: listener.port, url: links.url(listener.port), leave, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Wakes an agent for due deliveries, without waiting. If KV is unavailable, Postgres notifies all
 * agents.
 */
function signalDue(
  {
    kv,
    database,
    log,
    shard,
  }: Pick<AppContext, 'kv' | 'database' | 'log'> & { readonly shard: string },
  events: readonly { readonly projectId: string; readonly eventId: string }[],
): void {
  kv.queue(queueOf('first-attempts', shard))
    .push(events.map(({ projectId, eventId }) => encodeSignal({ projectId, id: eventId })))
    .catch((error: unknown) => {
      log.debug({ error }, 'KV is unavailable: notifying agents through Postgres.');
      return notifyDue(database.pool, [...new Set(events.map(({ projectId }) => projectId))]);
    })
    .catch((error: unknown) =>
      log.debug(
        { error },
        'Could not notify agents; they will find due deliveries within seconds.',
      ),
    );
}
