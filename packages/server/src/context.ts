import type { Config } from '@gateway/core/config';
import type { Sealer } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import type { Lifecycle } from '@gateway/core/process';
import { EventCreator } from '@gateway/ingest/commit/event-creator';
import { signalPending } from '@gateway/ingest/commit/signal-pending';
import type { IntakeParts } from '@gateway/ingest/intake';
import { openFunctions } from '@gateway/ingest/requests/functions';
import { shardFinder } from '@gateway/ingest/routing/shard-of';
import { eventTypeCatalogue, recordKeyUse } from '@gateway/store/config';
import type { Kv } from '@gateway/store/kv';
import { bothPlanes, type Database, type Replicas } from '@gateway/store/postgres';
import type { AppContext } from './api/route.js';
import { longReads, requestShares } from './api/shares.js';
import type { Billing } from './billing.js';
import { addressReader } from './auth/client-address.js';
import { startKeyUse } from './auth/key-use.js';
import { loginGuard } from './auth/login-guard.js';
import { derivedKey, processCredentials } from './auth/process-credentials.js';
import { recordCache } from './auth/record-cache.js';
import { requestLimit } from './auth/request-limit.js';
import { sessionCookies } from './auth/session-cookie.js';
import { askDatabase } from './health/database-outage.js';
import { healthProbe } from './health/healthz.js';
import { kvFallback } from './health/kv-fallback.js';
import { largestBody } from './http/body.js';
import { PROVIDER_BYTES_MAX } from './ingest/providers.js';
import { bodyRoom } from './http/body-room.js';

const PACE_SECONDS = 1;

export interface ContextParts extends IntakeParts, Pick<AppContext, 'links' | 'oidc'> {
  readonly seals: Sealer;
  readonly billing: Pick<Billing, 'problem'> | undefined;
  /** Undefined in a process that only takes events. */
  readonly replicas: Pick<Replicas, 'read' | 'states'> | undefined;
}

/** Services that must be closed are added to `lifecycle`. */
export function openContext(
  { seals, configCache, pace, writer, sandbox, ...given }: ContextParts,
  lifecycle: Pick<Lifecycle, 'add'>,
): AppContext {
  const { config, database, kv, plugins, log, links, shards } = given;
  const shardOf = shardFinder(configCache, database);
  const catalogue = eventTypeCatalogue(database.pool);
  const functions = openFunctions({
    config,
    database,
    catalogue,
    log,
    ...(sandbox && { sandbox }),
  });
  if (!sandbox) lifecycle.add('functions', () => functions.close());
  const keyUse = startKeyUse((used) => recordKeyUse(database.pool, used), log);
  lifecycle.add('key use', () => keyUse.close());
  const addressOf = addressReader(config.server.trusted_proxies);
  const { limit, portalLimit, ...kvUsing } = kvUsers(config, {
    database,
    configCache,
    kv,
    plugins,
    log,
    addressOf,
  });
  return {
    ...given,
    sealer: seals,
    credentials: processCredentials(config, log),
    events: new EventCreator({ writer, configCache, database }),
    catalogue,
    signalPending: (events, shard) => void signalPending({ kv, log, shard }, events),
    functions,
    probeHealth: healthProbe(given),
    longReads: longReads(config.database.max_open_connections),
    sessions: sessionCookies({
      isHttps: links.isHttps,
      key: derivedKey(config.encryption_key, 'csrf tokens'),
    }),
    addressOf,
    ...kvUsing,
    admission: {
      limit,
      portalLimit,
      keyUse,
      configCache,
      read: given.replicas?.read ?? ((work) => work(bothPlanes(database))),
      shardOf: async (id, known) =>
        shards.find(configCache.projects.get(id)?.shard ?? known ?? (await shardOf(id))),
      requirePace(projectId) {
        const { events_per_second: limit } = config.limits;
        if (pace.isOver(projectId))
          throw new GatewayError('too_many_events', { limit, retryAfterSeconds: PACE_SECONDS });
      },
      ask: askDatabase(given),
      receive: bodyRoom({
        messageBytes: Math.max(largestBody(config), PROVIDER_BYTES_MAX),
        timeoutSeconds: config.server.http.body_timeout_seconds,
      }),
      takeShare: requestShares(config.server.project_concurrency),
    },
  };
}

/** Per project, such as when an application sets up its sources. */
const TESTS_AT_ONCE = 20;
const PORTAL_BURST_SECONDS = 5;
/** Per address, at once and per second. */
const RESETS_AT_ONCE = 5;
const RESETS_PER_SECOND = 1 / 60;

function kvUsers(
  config: Config,
  {
    database,
    configCache,
    kv,
    plugins: { meter },
    log,
    addressOf,
  }: {
    database: Database;
    configCache: ContextParts['configCache'];
    kv: Kv;
    plugins: ActivatedPlugins;
    log: Log;
    addressOf: AppContext['addressOf'];
  },
) {
  const { cache, limiter, connection_tests, function_tests } = config.server;
  const uses = [
    ...(cache === 'kv' ? ['each request looks up its credentials in Postgres'] : []),
    ...(limiter === 'kv' ? ['this server counts requests and failed logins on its own'] : []),
  ];
  const shared = kvFallback(kv, { place: config.kv, log, meanwhile: uses.join(', and ') });
  const kvFor = (provider: typeof cache) => (provider === 'kv' ? shared : undefined);
  return {
    records: recordCache(database, {
      kv: kvFor(cache),
      key: derivedKey(config.encryption_key, 'cache of the server'),
      configCache,
    }),
    limit: requestLimit({ ratePerSecond: config.api_rate_limit, kv: kvFor(limiter) }),
    portalLimit: requestLimit({
      ratePerSecond: config.portal.requests_per_second,
      burst: config.portal.requests_per_second * PORTAL_BURST_SECONDS,
      kv: kvFor(limiter),
      code: 'too_many_portal_requests',
    }),
    tests: requestLimit({
      ratePerSecond: connection_tests,
      burst: TESTS_AT_ONCE,
      kv: kvFor(limiter),
      code: 'too_many_tests',
    }),
    functionTests: requestLimit({
      ratePerSecond: function_tests,
      burst: TESTS_AT_ONCE,
      kv: kvFor(limiter),
      code: 'too_many_function_tests',
    }),
    endpointTests: requestLimit({
      ratePerSecond: 1,
      burst: TESTS_AT_ONCE,
      kv: kvFor(limiter),
      code: 'too_many_test_events',
    }),
    resets: requestLimit({
      ratePerSecond: RESETS_PER_SECOND,
      burst: RESETS_AT_ONCE,
      kv: kvFor(limiter),
      code: 'too_many_resets',
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
