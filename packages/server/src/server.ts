import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Config } from '@gateway/core/config';
import { sealer } from '@gateway/core/crypto';
import { metricsResponse, serveMetrics, showProcess } from '@gateway/core/exposition';
import { closeListener, listen } from '@gateway/core/http';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { Lifecycle } from '@gateway/core/process';
import { openFunctions } from '@gateway/ingest/once/functions';
import { eventTypeCatalogue, recordKeyUse } from '@gateway/store/config';
import { startSampler } from '@gateway/store/counts/sampler';
import { encodeSignal, eventCreator, type EventRef } from '@gateway/store/events';
import { openKv, retryKv, type Kv } from '@gateway/store/kv';
import { startUsageCounter } from '@gateway/store/usage';
import { openDatabase, requireReady, exportPoolMetrics, type Database } from '@gateway/store/postgres';
import { createApp } from './api/app.js';
import { eventPace } from './api/event-pace.js';
import type { ServerContext } from './api/route.js';
import { requestShares } from './api/shares.js';
import { addressReader } from './auth/client-address.js';
import { startKeyUse } from './auth/key-use.js';
import { loginGuard } from './auth/login-guard.js';
import { openOidc } from './auth/oidc/provider.js';
import { derivedKey, processCredentials } from './auth/process-credentials.js';
import { recordCache } from './auth/record-cache.js';
import { requestLimit } from './auth/request-limit.js';
import { sessionCookies } from './auth/session-cookie.js';
import { startBilling } from './billing.js';
import { serveDashboard } from './dashboard.js';
import { askDatabase } from './health/database-outage.js';
import { healthProbe } from './health/healthz.js';
import { kvFallback } from './health/kv-fallback.js';
import { largestBody } from './http/body.js';
import { BODY_BYTES_PER_SECOND, bodyRoom } from './http/body-room.js';
import { linksOf } from './http/links.js';
import { ingestRouter } from './ingest/ingest.js';
import { documentRouter } from './openapi/pages.js';
import { routes } from './routes/index.js';
import { readTlsPair, reloadCertificates, tlsFiles } from './tls.js';

/** Besides what its body may take. */
const REQUEST_TIMEOUT_MS = 60_000;
const TIMEOUTS_CHECKED_MS = 5_000;
/** Closing takes at most this long; running requests get ten seconds of it. */
const CLOSE_MS = 30_000;
/** How long the start waits for KV, so that the first requests find it. */
const KV_PATIENCE_MS = 500;

export interface ServerOptions {
  readonly config: Config;
  readonly plugins: ActivatedPlugins;
  readonly log: Log;
  /** Replaces the KV of the settings: `gateway dev` shares one. */
  readonly kv?: Kv;
}

/** Starts the management API, /healthz and /metrics. Throws when a setting is wrong, Postgres unreachable, a migration pending, or a port taken. */
export async function startServer({
  config,
  plugins,
  log,
  kv: givenKv,
}: ServerOptions): Promise<{ port: number; url: string; close(): Promise<void> }> {
  const seals = sealer(config.encryption_key);
  const links = linksOf(config);
  const credentials = processCredentials(config, log);
  const files = tlsFiles(config.server.http);
  const tls = files && { files, inUse: readTlsPair(files) };
  const oidc = await openOidc({ config, sealer: seals, links, log });
  const lifecycle = new Lifecycle(log);
  const close = () => lifecycle.close({ deadlineMs: CLOSE_MS });
  try {
    if (oidc) lifecycle.add('oidc', () => oidc.close());
    const database = openDatabase(config.database, { poolSize: config.database.max_open_connections, name: 'gateway-server' });
    lifecycle.add('database', () => database.close());
    lifecycle.add('process series', showProcess(plugins, 'server'));
    lifecycle.add('pool series', exportPoolMetrics(plugins.meter, database));
    // KV only speeds up signals to agents: the server starts and works without it.
    const kv = givenKv ?? openKv(config.kv, () => undefined);
    if (!givenKv) lifecycle.add('kv', () => kv.close());
    const connecting = retryKv(() => kv.ping(), KV_PATIENCE_MS).catch(() => undefined);
    await requireReady(database, config.database);
    const usage = startUsageCounter({ pool: database.pool, log });
    lifecycle.add('usage', () => usage.close());
    const billing = startBilling({ config, database, log });
    if (billing) lifecycle.add('billing', () => billing.close());
    lifecycle.add('sampler', startSampler({ config, plugins, database, kv, log }));
    const catalogue = eventTypeCatalogue(database.pool);
    const functions = openFunctions({ config, database, catalogue, log });
    lifecycle.add('functions', () => functions.close());
    let closing = false;
    const signalPending = (events: readonly EventRef[]) => signalEvents(kv, events, log);
    const events = eventCreator({
      pool: database.pool,
      windowSeconds: config.ingest.idempotency_window_seconds,
      committed: signalPending,
    });
    const services = {
      config,
      database,
      kv,
      plugins,
      sealer: seals,
      log,
      links,
      credentials,
      events,
      pace: eventPace(config.limits.events_per_second),
      catalogue,
      signalPending,
      usage,
      billing,
      functions,
    };
    const keyUse = startKeyUse((used) => recordKeyUse(database.pool, used), log);
    lifecycle.add('key use', () => keyUse.close());
    const sessions = sessionCookies({ isHttps: links.isHttps, key: derivedKey(config.encryption_key, 'csrf tokens') });
    const addressOf = addressReader(config.server.trusted_proxies);
    const context = {
      ...services,
      probeHealth: healthProbe(services),
      ask: askDatabase(services),
      receive: bodyRoom({ messageBytes: largestBody(config), timeoutSeconds: config.server.http.body_timeout_seconds }),
      takeShare: requestShares(config.server.project_concurrency),
      keyUse,
      sessions,
      oidc,
      addressOf,
      ...kvUsers(config, { database, kv, plugins, log, addressOf }),
    };
    const pages = {
      ingest: ingestRouter(context),
      documents: documentRouter(routes, { rootPath: config.root_path, hasBasic: credentials.basic }),
      dashboard: config.dashboard.enabled ? serveDashboard(config.root_path, config.portal.frame_ancestors) : undefined,
    };
    const app = createApp(routes, pages, context, () => closing).callback();
    if (config.server.pulladdr !== undefined) {
      const place = { address: config.server.pulladdr, key: 'server.pulladdr', env: 'GATEWAY_PULLADDR' };
      const metrics = await serveMetrics(place, metricsResponse(services));
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
    return { port: listener.port, url: links.url(listener.port), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Works on the requests of a connection one after the other: a response has its socket when those before it are sent. */
function inTurn(app: RequestListener): RequestListener {
  return (request, response) => {
    if (response.socket) app(request, response);
    else response.once('socket', () => app(request, response));
  };
}

async function serve(
  app: RequestListener,
  { config, tls, log }: { config: Config; tls: Omit<Parameters<typeof reloadCertificates>[1], 'log'> | undefined; log: Log },
): Promise<{ port: number; close(): Promise<void> }> {
  const { http } = config.server;
  const { port, bind } = http;
  const place = { port, bind, setting: 'server.http.port (PORT)', flag: '--port' };
  const options = {
    // For bodies that no route reads; those that are read have an answer of their own before.
    requestTimeout: REQUEST_TIMEOUT_MS + 1000 * (http.body_timeout_seconds + Math.ceil(largestBody(config) / BODY_BYTES_PER_SECOND)),
    connectionsCheckingInterval: TIMEOUTS_CHECKED_MS,
  };
  if (!tls) {
    const server = createServer(options, app);
    return { port: await listen(server, place), close: () => closeListener(server) };
  }
  const server = createTlsServer({ ...options, ...tls.inUse.options }, app);
  const listening = await listen(server, place);
  const stopReloading = reloadCertificates(server, { ...tls, log });
  return {
    port: listening,
    close: () => {
      stopReloading();
      return closeListener(server);
    },
  };
}

/** Not awaited: the reconciler finds events whose signal is lost. */
function signalEvents(kv: Kv, events: readonly EventRef[], log: Log): void {
  kv.queue('create-event')
    .push(events.map(encodeSignal))
    .catch((error: unknown) => log.debug({ error }, 'KV is away: pending events are routed by the reconciler, a few seconds later.'));
}

/** Connection tests, or function tests, of a project without a wait, as when an application sets up its sources. */
const TESTS_AT_ONCE = 20;
const PORTAL_BURST_SECONDS = 5;

function kvUsers(
  config: Config,
  {
    database,
    kv,
    plugins: { meter },
    log,
    addressOf,
  }: { database: Database; kv: Kv; plugins: ActivatedPlugins; log: Log; addressOf: ServerContext['addressOf'] },
): Pick<ServerContext, 'records' | 'limit' | 'portalLimit' | 'tests' | 'functionTests' | 'logins'> {
  const { cache, limiter, connection_tests, function_tests } = config.server;
  const uses = [
    ...(cache === 'kv' ? ['each request looks up in Postgres who asks'] : []),
    ...(limiter === 'kv' ? ['this server counts requests and failed logins on its own'] : []),
  ];
  const shared = kvFallback(kv, { place: config.kv, log, meanwhile: uses.join(', and ') });
  const kvFor = (provider: typeof cache) => (provider === 'kv' ? shared : undefined);
  return {
    records: recordCache(database, { kv: kvFor(cache), key: derivedKey(config.encryption_key, 'cache of the server') }),
    limit: requestLimit({ ratePerSecond: config.api_rate_limit, kv: kvFor(limiter) }),
    portalLimit: requestLimit({
      ratePerSecond: config.portal.requests_per_second,
      burst: config.portal.requests_per_second * PORTAL_BURST_SECONDS,
      kv: kvFor(limiter),
      code: 'too_many_portal_requests',
    }),
    tests: requestLimit({ ratePerSecond: connection_tests, burst: TESTS_AT_ONCE, kv: kvFor(limiter), code: 'too_many_tests' }),
    functionTests: requestLimit({
      ratePerSecond: function_tests,
      burst: TESTS_AT_ONCE,
      kv: kvFor(limiter),
      code: 'too_many_function_tests',
    }),
    logins: loginGuard(config.server, {
      key: derivedKey(config.encryption_key, 'failed logins'),
      kv: kvFor(limiter),
      meter,
      log,
      addressOf,
    }),
  };
}
