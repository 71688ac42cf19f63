import satisfies from 'semver/functions/satisfies.js';
import { API_VERSION } from '@gateway/plugin/manifest';
import { settingAt, type Resolved } from './config.js';
import { GatewayError, type Problem } from './errors.js';
import type { Licence } from './licence.js';
import type { InstalledPlugin } from './manifest.js';

/**
 * Why a plugin may not become active, decided before a line of its code is imported; undefined when it may. In this order: API range,
 * selected by configuration, feature flag, licence, settings.
 */
export function refusalOf(plugin: InstalledPlugin, resolved: Resolved, licence: Licence): GatewayError | undefined {
  const { kind, name, api, manifest } = plugin;
  if (!satisfies(API_VERSION, api)) return new GatewayError('plugin_api', { kind, name, range: api, ours: API_VERSION });
  const how = howToSelect(plugin, resolved);
  if (how) return new GatewayError('plugin_not_selected', { kind, name, how });
  const { featureFlag: flag, entitlement } = manifest;
  if (flag && !resolved.config.enable_feature_flag.includes(flag)) return new GatewayError('plugin_flag_off', { kind, name, flag });
  if (entitlement && !licence.entitlements.has(entitlement)) {
    const whose = licence.kind === 'community' ? 'the community licence' : `the licence of ${licence.organisation}`;
    return new GatewayError('plugin_not_entitled', { kind, name, entitlement, licence: whose });
  }
  const problems = settingProblems(plugin, resolved);
  return problems.length > 0 ? new GatewayError('plugin_settings', { kind, name, problems }) : undefined;
}

/** How to select a plugin that the configuration does not; undefined when it is selected. Sources always are. */
function howToSelect({ kind, name }: InstalledPlugin, { config }: Resolved): string | undefined {
  switch (kind) {
    case 'source':
      return undefined;
    case 'tracer':
      if (config.tracer.type === name) return undefined;
      return `set tracer.type to ${name} (--tracer-type, GATEWAY_TRACER_PROVIDER)`;
    case 'metrics':
      if (config.metrics.metrics_backend !== name)
        return `set metrics.metrics_backend to ${name} (--metrics-backend, GATEWAY_METRICS_BACKEND)`;
      return config.metrics.enabled ? undefined : 'set metrics.enabled to true (--metrics-enabled, GATEWAY_METRICS_ENABLED)';
  }
}

/** Settings of the plugin that are wrong, and those that it needs and nobody gave. */
function settingProblems(plugin: InstalledPlugin, resolved: Resolved): Problem[] {
  const wrong = resolved.pluginProblems.filter(({ key }) => plugin.rows[key]);
  const missing = missingSettings(plugin, resolved);
  return [...wrong, ...missing.map((key) => ({ key, origin: 'default', sentence: `${key} is not set` }))];
}

/** The keys of settings that the plugin needs and nobody gave, not even wrongly. */
export function missingSettings({ rows }: InstalledPlugin, { config, pluginProblems }: Resolved): string[] {
  return Object.entries(rows)
    .filter(([key, row]) => row.required && settingAt(config, key) === undefined && !pluginProblems.some((it) => it.key === key))
    .map(([key]) => key);
}
