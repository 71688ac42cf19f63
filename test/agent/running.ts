import { resolveConfig } from '#core/config/config';
import type { Config } from '#core/config/settings';
import { sealer } from '#core/crypto/sealing';
import type { Log } from '#core/logging/log';
import { createMeter } from '#core/metrics/meter';
import type { ActivatedPlugins } from '#core/plugins/activation';
import { Health } from '#core/process/health';
import { LoopShares } from '#core/process/loop-shares';
import { TokenBuckets } from '#core/process/token-buckets';
import { showGauges } from '#agent/gauges';
import { sandboxLimits } from '#ingest/transform/sandboxes';
import { Sandbox } from '@gateway/sandbox';
import { ConfigCache } from '#ingest/routing/config-cache';
import { processParts, type ProcessParts } from '#agent/process-parts';
import { wireWorker, type ShardWorker } from '#agent/shard-worker';
import type { Kv } from '#store/kv/kv';
import { MemoryKv } from '#store/kv/memory-kv';
import { openDatabase, type Database } from '#store/postgres/database';
import { Shards } from '#store/shards/open-shards';
import { within } from '../support/until.js';
import type { migratedDatabase } from '../store/migrated.js';
import { connectionOf } from '../support/database.js';
import { ENCRYPTION_KEY, makeProject } from './records.js';

/** A migrated database, with queries that bypass the store. */
export type Migrated = Awaited<ReturnType<typeof migratedDatabase>>;

/** An agent's test settings, with overrides. */
export function agentConfig(
  url: string,
  settings: Readonly<Record<string, unknown>> = {},
  port?: number,
): Config {
  return resolveConfig({
    env: {},
    command: 'agent',
    file: {
      encryption_key: ENCRYPTION_KEY,
      instance_ingest_rate: 0,
      kv: { type: 'in-memory' },
      delivery: { allowed_networks: ['127.0.0.0/8'] },
      source: { allowed_networks: ['127.0.0.0/8'] },
      ...settings,
      database: { ...connectionOf(url), ...(port ? { port } : {}) },
      server: { http: { bind: '127.0.0.1', agent_port: 0 } },
    },
  }).config;
}

/** Only these source plugins, and no metrics. */
export function pluginsOf(sources: ActivatedPlugins['sources'] = new Map()): ActivatedPlugins {
  return {
    sources,
    pushSources: new Map(),
    codecs: new Map(),
    meter: createMeter(undefined),
    table: [],
    gates: {} as ActivatedPlugins['gates'],
    close: () => Promise.resolve(),
  };
}

/** A log that records its sentences. */
export function keptLog(): {
  readonly log: Log;
  readonly lines: readonly {
    readonly level: string;
    readonly sentence: string;
    readonly fields: object;
  }[];
} {
  const lines: { level: string; sentence: string; fields: object }[] = [];
  const keep = (level: string) => (fields: object, sentence: string) =>
    void lines.push({ level, sentence, fields });
  const log: Log = {
    debugging: true,
    debug: keep('debug'),
    info: keep('info'),
    warn: keep('warn'),
    error: keep('error'),
    child: () => log,
  };
  return { log, lines };
}

/** The parts of an agent, wired as in production on real stores. */
export interface RunningAgent {
  readonly db: Migrated;
  /** The agent's connections, separate from those of `db`. */
  readonly database: Database;
  readonly kv: Kv;
  readonly configCache: ConfigCache;
  readonly health: Health;
  readonly log: Log;
  readonly pace: TokenBuckets;
  readonly wiring: ShardWorker & Pick<ProcessParts, 'circuitBreakers' | 'successStreak'>;
  readonly projectId: string;
  readonly lines: ReturnType<typeof keptLog>['lines'];
  /** Drains and closes, as an agent does. */
  close(): Promise<void>;
}

/**
 * Wires an agent, starts its heartbeat and reads its configuration. `wiring.start()` starts sources
 * and queues.
 */
export async function runAgent(options: {
  readonly db: Migrated;
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly kv?: Kv;
  readonly port?: number;
  readonly answerMs?: number;
  /** An existing project; by default a new one. */
  readonly projectId?: string;
  /** None by default. */
  readonly plugins?: ActivatedPlugins;
}): Promise<RunningAgent> {
  const { db, settings = {}, kv = new MemoryKv(), port, plugins = pluginsOf() } = options;
  const projectId = options.projectId ?? (await makeProject(db));
  const config = agentConfig(db.url, settings, port);
  const { log, lines } = keptLog();
  const database = openDatabase(config.database, {
    poolSize: 8,
    name: 'gateway-agent',
    ...(options.answerMs ? { answerMs: options.answerMs } : {}),
  });
  const configCache = new ConfigCache(database, {
    intervalMs: 60_000,
    verifyMs: 2_000,
    eventLoopMs: 0,
    log,
  });
  const health = new Health();
  const sandbox = new Sandbox(sandboxLimits(config));
  const { open } = sealer(ENCRYPTION_KEY);
  const shards = new Shards(database, {
    settings: config.database,
    open,
    poolSize: 1,
    name: 'gateway-agent',
  });
  const running: ShardWorker[] = [];
  const pace = new TokenBuckets(config.limits.events_per_second);
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
    pace,
    name: 'test',
    workers: {
      running,
      ofProject: () => running,
      writer: () => ({ push: (message) => running[0]!.eventWriter.push(message) }),
    },
  });
  const worker = wireWorker(shards.of('default'), parts);
  running.push(worker);
  const hide = plugins.metrics ? showGauges(plugins, parts, () => [worker]) : undefined;
  await configCache.start();
  await worker.heartbeat.start();
  const { circuitBreakers, successStreak } = parts;
  return {
    db,
    database,
    kv,
    configCache,
    health,
    log,
    pace,
    wiring: Object.assign(worker, { circuitBreakers, successStreak }),
    projectId,
    lines,
    close: async () => {
      await within(worker.drain(parts.stop()), 40_000, 'the drain');
      await worker.destination.close();
      await parts.close();
      hide?.();
      await sandbox.close();
      await worker.heartbeat.leave();
      await configCache.close();
      await database.close();
    },
  };
}
