import type { Health } from '@gateway/core/process';
import { DEFAULT_SHARD } from '@gateway/store/shards';

/** The health of a data plane, as a part of the process's. */
export type PlaneHealth = Pick<Health, 'report' | 'of' | 'forget'>;

/** Components that the planes of a process share. */
const SHARED = ['kv', 'smtp', 'resources'];

/** Returns the health of a shard's plane. It names the shard, unless that is the default one. */
export function planeHealth(health: Health, shard: string): PlaneHealth {
  if (shard === DEFAULT_SHARD) return health;
  const nameOf = (component: string) =>
    SHARED.includes(component) ? component : `${component} (shard ${shard})`;
  return {
    report: (component, ...state) => health.report(nameOf(component), ...state),
    of: (component) => health.of(nameOf(component)),
    forget: (component) => health.forget(nameOf(component)),
  };
}
