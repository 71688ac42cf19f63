import { withTimeout, type ComponentState, type Health } from '@gateway/core/process';
import { shardComponent } from '@gateway/ingest/dependencies';
import { endpointIds } from '@gateway/store/config';
import { readEndpointTroubles, readProjectStates } from '@gateway/store/counts';
import { breakerView, readBreakers, type BreakerView } from '@gateway/store/kv';
import { readMoveStates } from '@gateway/store/moves';
import { readArchiveFailure } from '@gateway/store/retention/archive-first';
import type { ShardPlanes } from '@gateway/store/shards';
import type { FailingEndpoint, ProjectFacts } from './checks.js';
import { findingsOf, verdictOf } from './findings.js';
import { readConditions } from './source-conditions.js';
import type { Finding, Severity } from './table.js';

const READ_MS = 1_000;
/** Longer than the statements take, shorter than callers wait. */
const STATEMENTS_MS = 4_000;

export interface HealthReport {
  readonly state: Severity | 'idle' | 'ok';
  readonly sentence: string;
  readonly at: Date;
  readonly findings: readonly Finding[];
  readonly failingEndpoints: readonly FailingEndpoint[];
}

type Parts = Parameters<typeof readConditions>[0] & {
  /** The components of the process, as `/healthz` answers. */
  readonly probeHealth: () => Promise<Health>;
  readonly planes: ShardPlanes;
};

/**
 * Without Postgres, the shard of the project or KV, it says what is unknown and since when. It does
 * not see the memory of other processes: without `kv`, nothing that KV knows.
 */
export async function readHealthReport(parts: Parts): Promise<HealthReport> {
  const [health, breakers] = await Promise.all([parts.probeHealth(), openBreakers(parts)]);
  const { shard: name } = parts.planes;
  const away = health.of(shardComponent(name));
  const shard = away && away.state !== 'ok' ? { name, since: away.since } : undefined;
  const project = shard
    ? undefined
    : await withTimeout(readProject(parts, breakers ?? new Map()), STATEMENTS_MS).catch(
        () => undefined,
      );
  const now = project?.states.now ?? new Date();
  /** A read can fail just after a good probe. */
  const component = (of: string, isAway: boolean, state: ComponentState) => {
    const known = health.of(of);
    return isAway && known?.state === 'ok' ? { ...known, state, since: now } : known;
  };
  const components = {
    postgres: component('postgres', !project && !shard, 'down'),
    migrations: health.of('migrations'),
    kv: component('kv', !breakers || (project?.sources.isKvAway ?? false), 'degraded'),
    replicas: health.of('replicas'),
  };
  const [worst, ...others] = findingsOf({ now, components, shard, project });
  const [state, sentence] = worst
    ? ([worst.severity, verdictOf([worst, ...others])] as const)
    : project?.states.has_traffic
      ? (['ok', 'Healthy: messages are accepted, routed and delivered.'] as const)
      : (['idle', 'No traffic yet.'] as const);
  return {
    state,
    sentence,
    at: now,
    findings: worst ? [worst, ...others] : [],
    failingEndpoints: project?.endpoints.content ?? [],
  };
}

/** Keyed by endpoint. Undefined without KV. */
async function openBreakers({
  database,
  kv,
  project,
}: Parts): Promise<ReadonlyMap<string, BreakerView> | undefined> {
  if (!kv) return undefined;
  const ask = <T>(answer: Promise<T>) => withTimeout(answer, READ_MS).catch(() => undefined);
  const known = await ask(kv.map('breakers').some([]));
  if (!known || known.size === 0) return known && new Map();
  const ids = await withTimeout(endpointIds(database.knex, project.id), READ_MS).catch(() => []);
  const records = await ask(readBreakers(kv, ids));
  if (!records) return undefined;
  return new Map(
    [...records].flatMap(([id, record]) =>
      record.state !== 'closed' ? [[id, breakerView(record)] as const] : [],
    ),
  );
}

async function readProject(
  parts: Parts,
  breakers: ReadonlyMap<string, BreakerView>,
): Promise<ProjectFacts> {
  const { planes, project } = parts;
  const [states, archiveFailure, troubles, [move], sources] = await Promise.all([
    readProjectStates(planes, project.id),
    readArchiveFailure(planes.data, project.id),
    readEndpointTroubles(planes, project.id, [...breakers.keys()]),
    readMoveStates(planes.control, project.id),
    readConditions(parts),
  ]);
  const content = troubles.content.map((it) => ({ ...it, breaker: breakers.get(it.id) }));
  return { states, move, archiveFailure, endpoints: { ...troubles, content }, sources };
}
