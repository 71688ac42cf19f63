import type { Context } from 'koa';
import type { Config } from '@gateway/core/config';
import { databaseReason, isGatewayError, kvReason } from '@gateway/core/errors';
import { admitsToDetails } from '@gateway/core/exposition';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { Health, readySentence, statesOnly, VERSION, withTimeout } from '@gateway/core/process';
import type { Kv } from '@gateway/store/kv';
import {
  probeDatabase,
  requireMigrated,
  type Database,
  type Replicas,
} from '@gateway/store/postgres';
import { DEFAULT_SHARD, type Shard, type Shards } from '@gateway/store/shards';
import { send } from '../http/response.js';

const PROBE_MS = 3_000;
/** Components whose probes hang keep their last state meanwhile. */
const PATIENCE_MS = 500;

interface Probed {
  readonly config: Config;
  readonly database: Database;
  readonly shards: Pick<Shards, 'all'>;
  /** Undefined if it is in the memory of another process. */
  readonly kv: Kv | undefined;
  readonly billing: { readonly problem: string | null } | undefined;
  readonly replicas?: Pick<Replicas, 'states'> | undefined;
}

/** Concurrent callers share the probes, and wait at most half a second, or `patienceMs`. */
export type HealthProbe = () => Promise<Health>;

export function healthProbe(probed: Probed, patienceMs = PATIENCE_MS): HealthProbe {
  const health = new Health();
  const { billing, kv, replicas } = probed;
  const probing = new Map<string, Promise<void>>();
  const probe = (name: string, report: () => Promise<void>) => {
    const running = probing.get(name) ?? report().finally(() => probing.delete(name));
    probing.set(name, running);
    return running;
  };
  return async () => {
    const others = probed.shards.all.filter(({ name }) => name !== DEFAULT_SHARD);
    const names = new Set(others.map(({ name }) => shardComponent(name)));
    for (const { name } of health.components)
      if (name.startsWith(shardComponent('')) && !names.has(name)) health.forget(name);
    const probes = [
      probe('postgres', () => reportDatabase(health, probed)),
      ...others.map((shard) => probe(shardComponent(shard.name), () => reportShard(health, shard))),
      ...(kv ? [probe('kv', () => reportKv(health, { ...probed, kv }))] : []),
    ];
    await withTimeout(Promise.all(probes), patienceMs).catch(() => undefined);
    health.reportSecrets();
    if (billing)
      health.report(
        'billing',
        billing.problem === null ? 'ok' : 'degraded',
        billing.problem ?? undefined,
      );
    if (replicas && replicas.states.length > 0) {
      const problems = replicas.states.flatMap(({ problem }) => problem ?? []);
      health.report(
        'replicas',
        problems.length === 0 ? 'ok' : 'degraded',
        problems.length === 0 ? undefined : `${problems.join('; ')}; reads go elsewhere`,
      );
    }
    return health;
  };
}

/**
 * 200 while the process is alive. With `?ready`, 503 if the process cannot work. Callers without
 * access to details see only the states of components.
 */
export function healthAnswer(
  {
    config,
    plugins,
    probeHealth,
  }: {
    readonly config: Config;
    readonly plugins: ActivatedPlugins;
    readonly probeHealth: HealthProbe;
  },
  isClosing: () => boolean,
): (ctx: Context) => Promise<void> {
  const seesDetails = admitsToDetails(config);
  const facts = { version: VERSION, environment: config.env, plugins: plugins.table };
  return async (ctx) => {
    const isDetailed = seesDetails(ctx.req);
    if (!('ready' in ctx.query)) {
      send(ctx, 200, {
        status: true,
        message: 'alive',
        data: { draining: isClosing(), ...(isDetailed ? facts : {}) },
      });
      return;
    }
    const { state, components } = await probeHealth();
    const draining = isClosing();
    const ready = !draining && state !== 'down';
    const message = readySentence(ready, draining, isDetailed ? components : []);
    const details = isDetailed ? { components, ...facts } : { components: statesOnly(components) };
    send(ctx, ready ? 200 : 503, {
      status: ready,
      message,
      data: { ready, draining, state, ...details },
    });
  };
}

async function reportDatabase(health: Health, { database, config }: Probed): Promise<void> {
  try {
    // Probed first, because this probe has its own timeout. The migration check would hold a
    // connection while Postgres is unresponsive.
    const { isWritable } = await probeDatabase(database.pool, PROBE_MS);
    if (isWritable) health.report('postgres', 'ok');
    else {
      const { reason, fix } = databaseReason({ code: '25006' }, config.database);
      health.report(
        'postgres',
        'degraded',
        `${reason}. Reads work, writes do not. To fix it: ${fix}.`,
      );
    }
    await withTimeout(requireMigrated(database), PROBE_MS).then(
      (newer) =>
        newer.length === 0
          ? health.report('migrations', 'ok')
          : health.report(
              'migrations',
              'degraded',
              `the database is newer than this gateway: it has ${newer.join(', ')}; this version works with it too`,
            ),
      (error: unknown) => {
        // Migrations keep the previous version working (docs/guides/deploy.md, Upgrade), so old
        // servers stay ready during an upgrade.
        if (!isGatewayError(error, 'database_newer')) throw error;
        health.report(
          'migrations',
          'degraded',
          `${error.message}; this process keeps running but cannot restart: ${error.fix}`,
        );
      },
    );
  } catch (error) {
    if (isGatewayError(error, 'migration_pending')) {
      health.report('migrations', 'down', `${error.message}; ${error.fix}`);
    } else {
      const { reason, fix } = databaseReason(error, config.database);
      health.report('postgres', 'down', `${reason}. To fix it: ${fix}.`);
      health.report('migrations', 'down', 'unknown while Postgres is unavailable');
    }
  }
}

export function shardComponent(name: string): string {
  return `shard ${name}`;
}

/** An outage only degrades the server: projects on other shards are not affected. */
async function reportShard(health: Health, { name, database, settings }: Shard): Promise<void> {
  try {
    const { isWritable } = await probeDatabase(database.pool, PROBE_MS);
    if (!isWritable) throw Object.assign(new Error('read-only'), { code: '25006' });
    await withTimeout(requireMigrated(database, undefined, name), PROBE_MS);
    health.report(shardComponent(name), 'ok');
  } catch (error) {
    const { reason, fix } = databaseReason(error, settings);
    health.report(
      shardComponent(name),
      'degraded',
      `${reason}. Requests for its projects fail. To fix it: ${fix}.`,
    );
  }
}

/** An outage only degrades the server: signals to agents are slower. */
async function reportKv(
  health: Health,
  { kv, config }: Probed & { readonly kv: Kv },
): Promise<void> {
  try {
    await withTimeout(kv.ping(), PROBE_MS);
    health.report('kv', 'ok');
  } catch (error) {
    health.report(
      'kv',
      'degraded',
      `${kvReason(error, config.kv)}; events created here are routed a few seconds later`,
    );
  }
}
