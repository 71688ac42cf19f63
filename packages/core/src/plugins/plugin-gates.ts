import satisfies from 'semver/functions/satisfies.js';
import { API_VERSION } from '@gateway/plugin/manifest';
import type { Resolved } from '../config/config.js';
import { settingAt } from '../config/settings.js';
import type { Problem } from '../errors/error-row.js';
import { GatewayError } from '../errors/errors.js';
import type { Licence } from './licence.js';
import type { InstalledPlugin } from './manifest.js';

/**
 * Why a plugin may not become active, decided before any of its code is imported; undefined if it may. Checked in this order: API range,
 * selection by configuration, feature flag, licence, settings. A metrics backend lists all its closed gates at once.
 */
export function whyInactive(plugin: InstalledPlugin, resolved: Resolved, licence: Licence): GatewayError | undefined {
  const { kind, name, api } = plugin;
  if (!satisfies(API_VERSION, api)) return new GatewayError('plugin_api', { kind, name, range: api, ours: API_VERSION });
  const closed = closedGates(plugin, resolved, licence);
  if (kind === 'metrics' && closed.length > 1) {
    return new GatewayError('metrics_closed', { gates: closed.map(({ message, fix }) => ({ reason: message, fix })) });
  }
  if (closed[0]) return closed[0];
  const problems: Problem[] = resolved.pluginProblems.filter(({ key }) => plugin.rows[key]);
  for (const key of missingSettings(plugin, resolved)) problems.push({ key, origin: 'default', sentence: `${key} is not set` });
  return problems.length > 0 ? new GatewayError('plugin_settings', { problems }) : undefined;
}

function closedGates({ kind, name, manifest }: InstalledPlugin, { config, origins }: Resolved, licence: Licence): GatewayError[] {
  const { featureFlag: flag, entitlement } = manifest;
  const { metrics_backend: selected, enabled } = config.metrics;
  const closed: GatewayError[] = [];
  if (kind === 'tracer' && config.tracer.type !== name) {
    const how = `set tracer.type to ${name} (--tracer-type, GATEWAY_TRACER_PROVIDER)`;
    closed.push(new GatewayError('plugin_not_selected', { how }));
  }
  if (kind === 'metrics' && selected !== name) closed.push(new GatewayError('metrics_no_backend', { name, selected }));
  if (kind === 'metrics' && !enabled) {
    const origin = origins.get('metrics.enabled');
    closed.push(new GatewayError('metrics_off', { origin: origin === 'default' ? undefined : origin }));
  }
  if (flag && !config.enable_feature_flag.includes(flag)) closed.push(new GatewayError('plugin_flag_off', { flag }));
  if (entitlement && !licence.entitlements.has(entitlement)) {
    const whose = licence.kind === 'community' ? 'the community licence' : `the licence of ${licence.organisation}`;
    closed.push(new GatewayError('plugin_not_entitled', { entitlement, licence: whose }));
  }
  return closed;
}

/** The keys of required settings that are not set, not even wrongly. */
export function missingSettings({ rows }: InstalledPlugin, { config, pluginProblems }: Resolved): string[] {
  return Object.entries(rows)
    .filter(([key, row]) => row.required && settingAt(config, key) === undefined && !pluginProblems.some((it) => it.key === key))
    .map(([key]) => key);
}
