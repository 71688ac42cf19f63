import satisfies from 'semver/functions/satisfies.js';
import { API_VERSION } from '@gateway/plugin/manifest';
import { settingAt, type Resolved } from '../config/config.js';
import type { Problem } from '../errors/error-row.js';
import { GatewayError } from '../errors/errors.js';
import type { Licence } from './licence.js';
import type { InstalledPlugin } from './manifest.js';

/**
 * Why a plugin may not become active, decided before a line of its code is imported; undefined when it may. In this order: API range,
 * selected by configuration, feature flag, licence, settings. Of a metrics backend all closed gates are told at once.
 */
export function whyInactive(plugin: InstalledPlugin, resolved: Resolved, licence: Licence): GatewayError | undefined {
  const { kind, name, api } = plugin;
  if (!satisfies(API_VERSION, api)) return new GatewayError('plugin_api', { kind, name, range: api, ours: API_VERSION });
  const closed = closedGates(plugin, resolved, licence);
  if (kind === 'metrics' && closed.length > 1) {
    return new GatewayError('metrics_closed', { kind, name, gates: closed.map(({ message, fix }) => ({ reason: message, fix })) });
  }
  if (closed[0]) return closed[0];
  const problems = settingProblems(plugin, resolved);
  return problems.length > 0 ? new GatewayError('plugin_settings', { kind, name, problems }) : undefined;
}

/** What a plugin has to pass, and does not. */
function closedGates(plugin: InstalledPlugin, resolved: Resolved, licence: Licence): GatewayError[] {
  const { kind, name, manifest } = plugin;
  const { featureFlag: flag, entitlement } = manifest;
  const closed = notSelected(plugin, resolved);
  if (flag && !resolved.config.enable_feature_flag.includes(flag)) closed.push(new GatewayError('plugin_flag_off', { kind, name, flag }));
  if (entitlement && !licence.entitlements.has(entitlement)) {
    const whose = licence.kind === 'community' ? 'the community licence' : `the licence of ${licence.organisation}`;
    closed.push(new GatewayError('plugin_not_entitled', { kind, name, entitlement, licence: whose }));
  }
  return closed;
}

/** Why the configuration does not select a plugin; nothing when it does. Sources always are. */
function notSelected({ kind, name }: InstalledPlugin, { config, origins }: Resolved): GatewayError[] {
  switch (kind) {
    case 'source':
      return [];
    case 'tracer': {
      if (config.tracer.type === name) return [];
      const how = `set tracer.type to ${name} (--tracer-type, GATEWAY_TRACER_PROVIDER)`;
      return [new GatewayError('plugin_not_selected', { kind, name, how })];
    }
    case 'metrics': {
      const { metrics_backend: selected, enabled } = config.metrics;
      const origin = origins.get('metrics.enabled');
      return [
        ...(selected === name ? [] : [new GatewayError('metrics_no_backend', { kind, name, selected })]),
        ...(enabled ? [] : [new GatewayError('metrics_off', { kind, name, origin: origin === 'default' ? undefined : origin })]),
      ];
    }
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
