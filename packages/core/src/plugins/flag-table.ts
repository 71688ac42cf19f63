import type { FeatureFlag } from '../config/settings.js';
import type { PluginGates } from './plugin-table.js';

export interface FlagState {
  readonly name: string;
  readonly enabled: boolean;
  /** A flag, variable or file, or `default`. */
  readonly origin: string;
  readonly stability: FeatureFlag['stability'];
  readonly declared_by: string;
  readonly summary: string;
}

/** Returns the flags of installed plugins. */
export function flagStates({
  discovery,
  resolved: { config, origins },
}: Pick<PluginGates, 'discovery' | 'resolved'>): FlagState[] {
  const origin = origins.get('enable_feature_flag') ?? 'default';
  return Object.entries(discovery.flags).map(([name, { summary, stability, declaredBy }]) => {
    const enabled = config.enable_feature_flag.includes(name);
    return {
      name,
      enabled,
      origin: enabled ? origin : 'default',
      stability,
      declared_by: declaredBy,
      summary,
    };
  });
}
