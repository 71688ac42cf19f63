import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type RequestListener } from 'node:http';
import { duplexPair } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { linksOf, type Config } from '@gateway/core/config';
import { sealer, type Sealer } from '@gateway/core/crypto';
import {
  explainDatabaseError,
  explainKvError,
  GatewayError,
  isGatewayError,
} from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import { createMeter } from '@gateway/core/metrics/meter';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { Lifecycle, TokenBuckets } from '@gateway/core/process';
import { signalPending } from '@gateway/ingest/commit/signal-pending';
import { openKv, retryKv, type Kv } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';
import { explainShards, Shards } from '@gateway/store/shards';
import { createApp } from './api/app.js';
import { openContext, type AppContext } from './api/context.js';
import { routes } from './routes/index.js';

const CLOSE_MS = 5_000;
/** The first request waits this long. Without KV, only what needs it fails. */
const KV_PATIENCE_MS = 500;
const POOL_SIZE = 4;

/** The actor in audit logs. */
const CALLER = { type: 'process', id: 'command line' } as const;

export interface LocalApi {
  readonly fetch: typeof fetch;
  close(): Promise<void>;
}

interface LocalApiOptions {
  readonly config: Config;
  readonly database: Database;
  readonly log: Log;
}

/**
 * Serves a client in this process with the routes of the management API, without a port. Any key is
 * that of the operator of the instance. Errors name hosts, as those of commands do. Routes that
 * create events are missing: only agents and servers commit them.
 */
export async function openLocalApi({ config, database, log }: LocalApiOptions): Promise<LocalApi> {
  const lifecycle = new Lifecycle(log);
  const close = () => lifecycle.close({ deadlineMs: CLOSE_MS });
  const seals = lazySealer(config.encryption_key);
  const shards = new Shards(database, {
    settings: config.database,
    open: seals.open,
    poolSize: POOL_SIZE,
    name: 'gateway',
  });
  lifecycle.add('shards', () => shards.close());
  try {
    const kv = await kvOf(config, lifecycle);
    await shards.refresh();
    const settings = localSettings(config);
    const configCache = {
      projects: new Map<string, never>(),
      isCurrent: () => false,
      refresh: () => Promise.resolve(),
      invalidate: () => Promise.resolve(),
    };
    const context = openContext(
      {
        config: settings,
        database,
        shards,
        kv,
        plugins: NO_PLUGINS,
        log,
        links: linksOf(settings),
        seals,
        configCache,
        pace: new TokenBuckets(0),
        writer: { push: () => unsupported() },
      },
      lifecycle,
    );
    const signals: Promise<void>[] = [];
    lifecycle.add('signals', () => Promise.all(signals).then(() => undefined));
    const local: AppContext = {
      ...context,
      auth: {
        ...context.auth,
        credentials: { ...context.auth.credentials, ofBearer: () => CALLER },
      },
      // Awaited when the command ends.
      signalPending(events, shard) {
        if (config.kv.type !== 'in-memory') signals.push(signalPending({ kv, log, shard }, events));
      },
      admission: {
        ...context.admission,
        receive: async (request) => ({ bytes: await buffer(request), release: () => undefined }),
        ask: (work, { shards: used = () => Promise.resolve([]) }) =>
          work().catch(async (error: unknown) => {
            throw shown(await explainShards(error, await used().catch(() => [])), config);
          }),
      },
    };
    const app = createApp(
      routes.filter(({ createsEvents }) => !createsEvents),
      {},
      local,
    ).callback();
    return { fetch: fetchBy((incoming, response) => void app(incoming, response)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Drops limits that protect a server from its clients. */
function localSettings(config: Config): Config {
  const { server } = config;
  return {
    ...config,
    root_path: '',
    api_rate_limit: 0,
    server: {
      ...server,
      cache: 'in-memory',
      limiter: 'in-memory',
      function_tests: 0,
      auth: { ...server.auth, api_keys: [], basic: [], native: true, max_failures: 0 },
    },
  };
}

const NO_PLUGINS: ActivatedPlugins = {
  sources: new Map(),
  pushSources: new Map(),
  codecs: new Map(),
  meter: createMeter(undefined),
  table: [],
  gates: {} as never,
  close: () => Promise.resolve(),
};

/** Needs the encryption key only when a secret is sealed or opened. */
function lazySealer(encryptionKey: string | undefined): Sealer {
  let made: Sealer | undefined;
  const own = () => (made ??= sealer(encryptionKey));
  return {
    seal: (...given) => own().seal(...given),
    open: (...given) => own().open(...given),
    bind: (...given) => own().bind(...given),
  };
}

/** The memory of another process counts as unavailable. */
async function kvOf({ kv: settings }: Config, lifecycle: Lifecycle): Promise<Kv> {
  if (settings.type === 'in-memory')
    return new Proxy({} as Kv, {
      // Awaiting the proxy must not treat it as a promise.
      get: (_, name) => (name === 'then' ? undefined : unsupported),
    });
  const kv = openKv(settings, () => undefined);
  lifecycle.add('kv', () => kv.close());
  await retryKv(() => kv.ping(), KV_PATIENCE_MS).catch(() => undefined);
  return kv;
}

function unsupported(): never {
  throw new Error('this needs a running agent or server');
}

/** Puts the message in the response: other internal errors are only logged. */
function shown(error: unknown, config: Config): Error {
  const explained = isGatewayError(error, 'kv_away')
    ? explainKvError(error.cause, config.kv)
    : explainDatabaseError(error, config.database);
  if (!isGatewayError(explained) || explained.httpStatus !== 500) return explained;
  const { message: sentence, fix } = explained;
  return new GatewayError('conflict', { sentence, fix }, { cause: explained });
}

/** Connections are pipes in memory. */
function fetchBy(handle: RequestListener): typeof fetch {
  const server = createServer(handle);
  return async (target, { method, headers, body, signal } = {}) => {
    const [near, far] = duplexPair();
    server.emit('connection', far);
    const sent = request(target as URL, {
      method,
      headers: headers as Record<string, string>,
      createConnection: () => near,
      ...(signal && { signal }),
    });
    sent.end(body);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return new Response(await buffer(response), { status: response.statusCode! });
  };
}
