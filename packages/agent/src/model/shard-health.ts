import type { Health } from '@gateway/core/process';
import { DEFAULT_SHARD } from '@gateway/store/shards';

/** The health of a shard's worker, as a part of the process's. */
export type ShardHealth = Pick<Health, 'report' | 'of' | 'forget'>;

/** Returns the health of a shard's worker, which names the shard, unless that is the default one. */
export function shardHealth(health: Health, shard: string): ShardHealth {
  const nameOf = (component: string) =>
    shard === DEFAULT_SHARD ? component : `${component} (shard ${shard})`;
  return {
    report: (component, ...state) => health.report(nameOf(component), ...state),
    of: (component) => health.of(nameOf(component)),
    forget: (component) => health.forget(nameOf(component)),
  };
}
