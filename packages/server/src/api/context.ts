import type { Links } from '@gateway/core/config';
import type { Sealer } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import type { Lifecycle } from '@gateway/core/process';
import { EventCreator } from '@gateway/ingest/commit/event-creator';
import { signalPending } from '@gateway/ingest/commit/signal-pending';
import type { IntakeParts } from '@gateway/ingest/intake';
import { eventTypeCatalogue } from '@gateway/ingest/requests/event-type-catalogue';
import { keptCodecs } from '@gateway/ingest/decode/codecs';
import { openFunctions, type Functions } from '@gateway/ingest/requests/functions';
import { shardFinder } from '@gateway/ingest/routing/shard-of';
import { recordKeyUse } from '@gateway/store/config';
import { kvFallback, SharedBuckets } from '@gateway/store/kv';
import { bothPlanes, type Planes, type Replicas } from '@gateway/store/postgres';
import { addressReader } from '../auth/client-address.js';
import { startKeyUse } from '../auth/key-use.js';
import { loginGuard } from '../auth/login-guard.js';
import type { OidcProvider } from '../auth/oidc/provider.js';
import { derivedKey, processCredentials } from '../auth/process-credentials.js';
import { recordCache } from '../auth/record-cache.js';
import { requestLimit, type RequestLimitOptions } from '../auth/request-limit.js';
import { sessionCookies } from '../auth/session-cookie.js';
import { askDatabase } from '../health/database-outage.js';
import { healthProbe } from '../health/healthz.js';
import { largestRequest } from '../http/body.js';
import { bodyRoom } from '../http/body-room.js';
import { longReads, requestShares } from './shares.js';

const PACE_SECONDS = 1;
/** Per project, such as when an application sets up its sources. */
const TESTS_AT_ONCE = 20;
const PORTAL_BURST_SECONDS = 5;
/** Per address, at once and per second. */
const RESETS_AT_ONCE = 5;
const RESETS_PER_SECOND = 1 / 60;

export interface ContextParts extends IntakeParts {
  readonly seals: Sealer;
  readonly links: Links;
  /** Undefined if users sign in only by password. */
  readonly oidc?: OidcProvider | undefined;
  readonly billing?: { readonly problem: string | null } | undefined;
  /** Undefined in a process that only takes events. */
  readonly replicas?: Pick<Replicas, 'read' | 'states'> | undefined;
}

export type AppContext = ReturnType<typeof openContext>;

/** Services that must be closed are added to `lifecycle`. */
export function openContext(
  { seals, configCache, pace, writer, sandbox, oidc, billing, replicas, ...given }: ContextParts,
  lifecycle: Pick<Lifecycle, 'add'>,
) {
  const { config, database, kv, plugins, log, links, shards } = given;
  const { cache, limiter, connection_tests, function_tests } = config.server;
  const portalRate = config.portal.requests_per_second;
  const catalogue = eventTypeCatalogue(database.pool);
  const functions: Functions = openFunctions({
    config,
    database,
    catalogue,
    log,
    codecOf: keptCodecs({ plugins, open: seals.open, log }),
    ...(sandbox && { sandbox }),
  });
  if (!sandbox) lifecycle.add('functions', () => functions.close());
  const keyUse = startKeyUse((used) => recordKeyUse(database.pool, used), log);
  lifecycle.add('key use', () => keyUse.close());
  const addressOf = addressReader(config.server.trusted_proxies);
  const uses = [
    ...(cache === 'kv' ? ['each request looks up its credentials in Postgres'] : []),
    ...(limiter === 'kv' ? ['this server counts requests and failed logins on its own'] : []),
  ];
  const shared = kvFallback(kv, { place: config.kv, log, meanwhile: uses.join(', and ') });
  const limiting = limiter === 'kv' ? shared : undefined;
  const buckets = new SharedBuckets({ kv: limiting });
  const limit = (options: Omit<RequestLimitOptions, 'buckets'>) =>
    requestLimit({ buckets, ...options });
  const testLimit = (ratePerSecond: number, code: RequestLimitOptions['code'] & string) =>
    limit({ ratePerSecond, burst: TESTS_AT_ONCE, code });
  const shardOf = shardFinder(configCache, database);
  return {
    ...given,
    sealer: seals,
    addressOf,
    records: recordCache(database, {
      kv: cache === 'kv' ? shared : undefined,
      key: derivedKey(config.encryption_key, 'cache of the server'),
      configCache,
    }),
    auth: {
      credentials: processCredentials(config, log),
      logins: loginGuard(config.server, {
        key: derivedKey(config.encryption_key, 'failed logins'),
        kv: limiting,
        meter: plugins.meter,
        log,
        addressOf,
      }),
      sessions: sessionCookies({
        isHttps: links.isHttps,
        key: derivedKey(config.encryption_key, 'csrf tokens'),
      }),
      oidc,
    },
    events: new EventCreator({ writer, configCache, database }),
    catalogue,
    functions,
    /** Tells agents about pending events of a shard. */
    signalPending: (events: Parameters<typeof signalPending>[1], shard: string) =>
      void signalPending({ kv, log, shard }, events),
    probeHealth: healthProbe({ ...given, billing, replicas }),
    limits: {
      longReads: longReads(config.database.max_open_connections),
      tests: testLimit(connection_tests, 'too_many_tests'),
      functionTests: testLimit(function_tests, 'too_many_function_tests'),
      endpointTests: testLimit(1, 'too_many_test_events'),
      resets: limit({
        ratePerSecond: RESETS_PER_SECOND,
        burst: RESETS_AT_ONCE,
        code: 'too_many_resets',
      }),
    },
    /** For the steps around a route. */
    admission: {
      ask: askDatabase(given),
      configCache,
      keyUse,
      limit: limit({ ratePerSecond: config.api_rate_limit }),
      portalLimit: limit({
        ratePerSecond: portalRate,
        burst: portalRate * PORTAL_BURST_SECONDS,
        code: 'too_many_portal_requests',
      }),
      /** Throws `too_many_events` if the project exceeds `limits.events_per_second`. */
      requirePace(projectId: string): void {
        const { events_per_second: most } = config.limits;
        if (pace.isOver(projectId))
          throw new GatewayError('too_many_events', {
            limit: most,
            retryAfterSeconds: PACE_SECONDS,
          });
      },
      receive: bodyRoom({
        messageBytes: largestRequest(config),
        timeoutSeconds: config.server.http.body_timeout_seconds,
      }),
      takeShare: requestShares(config.server.project_concurrency),
      /** @param known the project's shard in a cached record, which follows a move later */
      shardOf: async (id: string, known?: string) =>
        shards.find(configCache.projects.get(id)?.shard ?? known ?? (await shardOf(id))),
      /** Uses a read replica of the default shard, or the primary. */
      read:
        replicas?.read ?? (<T>(work: (planes: Planes) => Promise<T>) => work(bothPlanes(database))),
    },
  };
}
