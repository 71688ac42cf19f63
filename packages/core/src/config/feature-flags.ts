import type { SettingsTable } from './settings.js';

export type Stability = 'experimental' | 'beta' | 'stable';

export interface FeatureFlag {
  readonly summary: string;
  readonly stability: Stability;
  /** `gateway`, or a plugin package. */
  readonly declaredBy: string;
}

export type FlagTable = Readonly<Record<string, FeatureFlag>>;

/** The gateway's own feature flags; plugins declare theirs in their manifests. */
export const coreFlags: FlagTable = {};

/** The settings, with `enable_feature_flag` limited to these flags. */
export function withFlags(table: SettingsTable, flags: FlagTable): SettingsTable {
  const row = table['enable_feature_flag'];
  return row ? { ...table, enable_feature_flag: { ...row, options: Object.keys(flags).sort(), noun: 'feature flag' } } : table;
}
