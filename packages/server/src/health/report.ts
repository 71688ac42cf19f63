import { withTimeout } from '@gateway/core/process';
import { endpointIds } from '@gateway/store/config';
import { readEndpointTroubles, readProjectStates } from '@gateway/store/counts/health';
import { readArchiveFailure } from '@gateway/store/retention/archive-first';
import { breakerView, readBreakers, type BreakerView } from '@gateway/store/kv';
import { readMoveStates, type MoveState } from '@gateway/store/moves';
import type { ShardPlanes } from '@gateway/store/shards';
import {
  findingsOf,
  verdictOf,
  type FailingEndpoint,
  type Finding,
  type HealthFacts,
} from './findings.js';
import { shardComponent, type HealthProbe } from './healthz.js';
import { readConditions, type NamedCondition } from './source-conditions.js';

const READ_MS = 1_000;
/** Longer than the statements take, shorter than callers wait. */
const STATEMENTS_MS = 4_000;

export interface HealthReport {
  readonly state: Finding['severity'] | 'idle' | 'ok';
  readonly sentence: string;
  readonly at: Date;
  readonly findings: readonly Finding[];
  readonly failingEndpoints: readonly FailingEndpoint[];
}

type Parts = Parameters<typeof readConditions>[0] & {
  readonly probeHealth: HealthProbe;
  readonly planes: ShardPlanes;
};

/**
 * Three statements on Postgres, the sources, the agents, and the breakers in KV. Without Postgres
 * or KV, it says what is unknown and since when. It does not see the memory of other processes:
 * without `kv`, nothing that KV knows.
 */
export async function readHealthReport(parts: Parts): Promise<HealthReport> {
  const [health, breakers] = await Promise.all([parts.probeHealth(), openBreakers(parts)]);
  const isUsable = (name: string) => (health.of(shardComponent(name))?.state ?? 'ok') === 'ok';
  const shardName = parts.planes.shard;
  const isAway = !isUsable(shardName);
  const reading = !isAway && fromPostgres(parts, breakers ?? new Map());
  const read =
    (await withTimeout(Promise.resolve(reading), STATEMENTS_MS).catch(() => undefined)) ||
    undefined;
  const now = read?.states.now ?? new Date();
  const shard = isAway ? health.of(shardComponent(shardName)) : undefined;
  const component = (name: string, isAway: boolean, state: 'down' | 'degraded') => {
    const known = health.of(name);
    // A read can fail just after a good probe.
    return isAway && known?.state === 'ok' ? { ...known, state, since: now } : known;
  };
  const [postgres, kv] = [
    component('postgres', !read && !shard, 'down'),
    component('kv', !breakers || (read?.isKvAway ?? false), 'degraded'),
  ];
  const [migrations, replicas] = [health.of('migrations'), health.of('replicas')];
  const facts: HealthFacts = {
    now,
    components: {
      ...(postgres && { postgres }),
      ...(kv && { kv }),
      ...(migrations && { migrations }),
      ...(replicas && { replicas }),
      ...(shard && { shard }),
    },
    ...(isAway && { shardName }),
    move: read?.move,
    states: read?.states,
    archiveFailure: read?.archiveFailure,
    endpoints: read?.endpoints ?? { content: [], count: { open: 0, failing: 0, partly: 0 } },
    sources: read?.sources ?? [],
  };
  const findings = findingsOf(facts);
  return {
    ...verdict(findings, facts),
    at: now,
    findings,
    failingEndpoints: facts.endpoints.content,
  };
}

function verdict(
  [worst, ...others]: readonly Finding[],
  { states }: HealthFacts,
): Pick<HealthReport, 'state' | 'sentence'> {
  if (worst) return { state: worst.severity, sentence: verdictOf([worst, ...others]) };
  return states?.has_traffic
    ? { state: 'ok', sentence: 'Healthy: messages are accepted, routed and delivered.' }
    : { state: 'idle', sentence: 'No traffic yet.' };
}

/** Keyed by endpoint. Undefined without KV. */
async function openBreakers({
  database,
  kv,
  project,
}: Parts): Promise<ReadonlyMap<string, BreakerView> | undefined> {
  if (!kv) return undefined;
  // Without Postgres, the read of none still tells whether KV answers.
  const ids = await withTimeout(endpointIds(database.knex, project.id), READ_MS).catch(() => []);
  const records = await withTimeout(readBreakers(kv, ids), READ_MS).catch(() => undefined);
  if (!records) return undefined;
  return new Map(
    [...records].flatMap(([id, record]) =>
      record.state !== 'closed' ? [[id, breakerView(record)] as const] : [],
    ),
  );
}

async function fromPostgres(
  parts: Parts,
  breakers: ReadonlyMap<string, BreakerView>,
): Promise<
  Pick<HealthFacts, 'archiveFailure' | 'endpoints'> & {
    readonly move: MoveState | undefined;
    readonly states: NonNullable<HealthFacts['states']>;
    readonly sources: readonly NamedCondition[];
    readonly isKvAway: boolean;
  }
> {
  const { planes, project } = parts;
  const [states, archiveFailure, troubles, [move], { conditions: sources, isKvAway }] =
    await Promise.all([
      readProjectStates(planes, project.id),
      readArchiveFailure(planes.data, project.id),
      readEndpointTroubles(planes, project.id, [...breakers.keys()]),
      readMoveStates(planes.control, project.id),
      readConditions(parts),
    ]);
  const content = troubles.content.map((it) => ({ ...it, breaker: breakers.get(it.id) }));
  return {
    states,
    move,
    archiveFailure,
    endpoints: { ...troubles, content },
    sources,
    isKvAway,
  };
}
