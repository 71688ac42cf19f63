import type { SettingsTable } from './settings.js';

export type Stability = 'experimental' | 'beta' | 'stable';

export interface FeatureFlag {
  readonly summary: string;
  readonly stability: Stability;
  /** `gateway`, or the plugin package that declares it. */
  readonly declaredBy: string;
}

export type FlagTable = Readonly<Record<string, FeatureFlag>>;

/** Feature flags of the gateway itself; plugins declare theirs in their manifests. */
export const coreFlags: FlagTable = {};

/** The table of settings in which `enable_feature_flag` takes the flags of this table only. */
export function withFlags(table: SettingsTable, flags: FlagTable): SettingsTable {
  const row = table['enable_feature_flag'];
  return row ? { ...table, enable_feature_flag: { ...row, options: Object.keys(flags).sort(), noun: 'feature flag' } } : table;
}
