import satisfies from 'semver/functions/satisfies.js';
import type { PluginKind } from '@gateway/plugin';
import { API_VERSION } from '@gateway/plugin/manifest';
import type { Resolved } from '../config/config.js';
import { GatewayError } from '../errors/errors.js';
import { type Config, settingAt } from '../config/settings.js';
import { didYouMean } from '../errors/suggest.js';
import type { Problem } from '../errors/error-row.js';
import type { Discovery } from './discovery.js';
import { importPlugin } from './import-plugin.js';
import type { Licence } from './licence.js';
import type { InstalledPlugin } from './manifest.js';

/** What decides which plugins become active. */
export interface PluginGates {
  readonly discovery: Discovery;
  readonly resolved: Resolved;
  readonly licence: Licence;
}

export interface PluginState {
  readonly name: string;
  /** `unknown` if the manifest could not be read; then the name is that of the package. */
  readonly kind: PluginKind | 'unknown';
  readonly version: string;
  /** `the installation`, or the plugin folder. */
  readonly from: string;
  readonly state: 'active' | 'inactive';
  /** Code of the errors table, when it is inactive. */
  readonly code?: string;
  /** Why it is inactive. */
  readonly reason?: string;
  readonly fix?: string;
}

/** The state of a plugin: inactive with an error, otherwise active. */
export function pluginState(it: Pick<PluginState, 'name' | 'version' | 'from'> & { kind?: PluginKind }, error?: GatewayError): PluginState {
  const { name, kind = 'unknown', version, from } = it;
  const why = error ? { code: error.code, reason: error.message, fix: error.fix } : {};
  return { name, kind, version, from, state: error ? 'inactive' : 'active', ...why };
}

/** Decides, before any of their code is imported, which of the refused, installed (as in `discovery`) and missing plugins become active. */
export function previewPlugins({ discovery, resolved, licence }: PluginGates): PluginState[] {
  return [
    ...discovery.refused.map((it) => pluginState(it, it.error)),
    ...discovery.plugins.map((plugin) => pluginState(plugin, whyInactive(plugin, resolved, licence))),
    ...missingPlugins(discovery, resolved.config),
  ];
}

/** As `previewPlugins`, with those that would be active imported, though not started: one that cannot be is inactive, as a process would find it. */
export async function importedPlugins(gates: PluginGates): Promise<PluginState[]> {
  const { refused, plugins } = gates.discovery;
  const table = previewPlugins(gates);
  const importing = plugins.map(async (plugin, i) => {
    const at = refused.length + i;
    if (table[at]?.state !== 'active') return;
    await importPlugin(plugin).catch((error: GatewayError) => (table[at] = pluginState(plugin, error)));
  });
  await Promise.all(importing);
  return table;
}

/** Plugins that the configuration selects but that are not installed. */
function missingPlugins(discovery: Discovery, { tracer, metrics }: Config): PluginState[] {
  const wanted = [
    { kind: 'tracer', name: tracer.type, setting: 'tracer.type (--tracer-type, GATEWAY_TRACER_PROVIDER)' },
    { kind: 'metrics', name: metrics.metrics_backend, setting: 'metrics.metrics_backend (--metrics-backend, GATEWAY_METRICS_BACKEND)' },
  ] as const;
  return wanted.flatMap(({ kind, name, setting }) => {
    const installed = [...discovery.plugins, ...discovery.refused].filter((it) => it.kind === kind).map((it) => it.name);
    if (!name || installed.includes(name)) return [];
    const error = new GatewayError('plugin_missing', { kind, name, setting, hint: didYouMean(name, installed) });
    return [pluginState({ name, kind, version: '', from: '' }, error)];
  });
}

/** Inactive because nothing asks for the plugin. */
const IDLE = ['plugin_not_selected', 'plugin_flag_off', 'metrics_no_backend', 'metrics_off', 'metrics_closed'];

/** Whether a plugin is inactive although the configuration selects it, or because it can never become active. */
export function isMissed({ name, kind, state, code = '' }: PluginState, { tracer, metrics }: Config): boolean {
  if (state === 'active') return false;
  const isSelected =
    (kind === 'tracer' && name === tracer.type) || (kind === 'metrics' && name === metrics.metrics_backend && metrics.enabled);
  return isSelected || !IDLE.includes(code);
}

/**
 * Why a plugin may not become active, decided before any of its code is imported; undefined if it may. Checked in this order: API range,
 * selection by configuration, feature flag, licence, settings. A metrics backend lists all its closed gates at once.
 */
export function whyInactive(plugin: InstalledPlugin, resolved: Resolved, licence: Licence): GatewayError | undefined {
  const { kind, name, api, package: from, version } = plugin;
  if (!satisfies(API_VERSION, api))
    return new GatewayError('plugin_api', { kind, name, package: from, version, range: api, ours: API_VERSION });
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
