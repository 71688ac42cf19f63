import type { Context } from 'koa';
import type { Config } from '@gateway/core/config';
import { admitsToDetails } from '@gateway/core/exposition';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { Health, readySentence, statesOnly, VERSION, withTimeout } from '@gateway/core/process';
import {
  checkDatabase,
  checkKv,
  faultText,
  replicasFault,
  shardComponent,
  type Fault,
} from '@gateway/ingest/dependencies';
import type { Kv } from '@gateway/store/kv';
import type { Database, Replicas } from '@gateway/store/postgres';
import { DEFAULT_SHARD, type Shards } from '@gateway/store/shards';
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
  readonly billing?: { readonly problem: string | null } | undefined;
  readonly replicas?: Pick<Replicas, 'states'> | undefined;
}

/** Concurrent callers share the probes, and wait at most half a second, or `patienceMs`. */
export type HealthProbe = () => Promise<Health>;

export function healthProbe(probed: Probed, patienceMs = PATIENCE_MS): HealthProbe {
  const { billing, config, database, kv, replicas, shards } = probed;
  const health = new Health();
  const tell = (name: string, fault: Fault | undefined, meanwhile?: string) =>
    void health.report(name, fault?.state ?? 'ok', fault && faultText(fault, meanwhile));
  const probing = new Map<string, Promise<void>>();
  const probe = (name: string, check: () => Promise<void>) => {
    const running = probing.get(name) ?? check().finally(() => probing.delete(name));
    probing.set(name, running);
    return running;
  };
  return async () => {
    const others = shards.all.filter(({ name }) => name !== DEFAULT_SHARD);
    const names = new Set(others.map(({ name }) => shardComponent(name)));
    for (const { name } of health.components)
      if (name.startsWith(shardComponent('')) && !names.has(name)) health.forget(name);
    const probes = [
      probe('postgres', async () => {
        const settings = config.database;
        const found = await checkDatabase({ name: DEFAULT_SHARD, database, settings }, PROBE_MS);
        tell('postgres', found.postgres);
        tell('migrations', found.migrations);
      }),
      ...others.map((shard) => {
        const name = shardComponent(shard.name);
        return probe(name, async () => {
          const { postgres, migrations } = await checkDatabase(shard, PROBE_MS);
          // A newer database works too, so its fault has no fix.
          const fault = postgres ?? (migrations?.fix === undefined ? undefined : migrations);
          // An outage only degrades the server: projects on other shards are not affected.
          tell(name, fault && { ...fault, state: 'degraded' }, 'Requests for its projects fail.');
        });
      }),
      ...(kv ? [probe('kv', async () => tell('kv', await checkKv(kv, config.kv, PROBE_MS)))] : []),
    ];
    await withTimeout(Promise.all(probes), patienceMs).catch(() => undefined);
    health.reportSecrets();
    if (billing)
      health.report(
        'billing',
        billing.problem === null ? 'ok' : 'degraded',
        billing.problem ?? undefined,
      );
    if (replicas && replicas.states.length > 0) tell('replicas', replicasFault(replicas.states));
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
