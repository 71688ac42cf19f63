import satisfies from 'semver/functions/satisfies.js';
import type { PluginKind } from '@gateway/plugin';
import { API_VERSION } from '@gateway/plugin/manifest';
import type { Resolved } from '../config/config.js';
import { GatewayError } from '../errors/errors.js';
import { type Config, type FeatureFlag, settingAt } from '../config/settings.js';
import { didYouMean } from '../errors/suggest.js';
import type { SettingProblem } from '../errors/error-row.js';
import { connectionSchemaProblem } from './connection-schema.js';
import type { Discovery } from './discovery.js';
import { importPlugin } from './import-plugin.js';
import type { Licence } from './licence.js';
import { isOurs, type InstalledPlugin } from './manifest.js';

export interface PluginGates {
  readonly discovery: Discovery;
  readonly resolved: Resolved;
  readonly licence: Licence;
}

export interface PluginState {
  readonly name: string;
  /** `unknown` if the manifest is unreadable. `name` is then the package name. */
  readonly kind: PluginKind | 'unknown';
  readonly version: string;
  /** `the installation`, or the path of the plugin folder. */
  readonly from: string;
  readonly state: 'active' | 'inactive';
  /** If inactive. */
  readonly code?: string;
  readonly reason?: string;
  readonly fix?: string;
}

export function pluginState(
  it: Pick<PluginState, 'name' | 'version' | 'from'> & { kind?: PluginKind },
  error?: GatewayError,
): PluginState {
  const { name, kind = 'unknown', version, from } = it;
  const why = error ? { code: error.code, reason: error.message, fix: error.fix } : {};
  return { name, kind, version, from, state: error ? 'inactive' : 'active', ...why };
}

/**
 * Imports nothing. Lists the refused plugins, the installed ones in the order of `discovery`, then
 * the missing ones.
 */
export function previewPlugins({ discovery, resolved, licence }: PluginGates): PluginState[] {
  return [
    ...discovery.refused.map((it) => pluginState(it, it.error)),
    ...discovery.plugins.map((plugin) =>
      pluginState(plugin, whyInactive(plugin, resolved, licence)),
    ),
    ...missingPlugins(discovery, resolved.config),
  ];
}

/**
 * Imports the active plugins without starting them. A plugin that fails to import becomes inactive.
 */
export async function importedPlugins(gates: PluginGates): Promise<PluginState[]> {
  const { refused, plugins } = gates.discovery;
  const table = previewPlugins(gates);
  const importing = plugins.map(async (plugin, i) => {
    const at = refused.length + i;
    if (table[at]?.state !== 'active') return;
    await importPlugin(plugin).catch(
      (error: GatewayError) => (table[at] = pluginState(plugin, error)),
    );
  });
  await Promise.all(importing);
  return table;
}

/** Undefined if there is no such plugin. */
export function whySourceInactive(
  table: readonly PluginState[],
  name: string,
  kind: PluginKind = 'source',
): { readonly reason: string; readonly fix: string } | undefined {
  const row = table.find((it) => it.kind === kind && it.name === name);
  return row?.reason === undefined ? undefined : { reason: row.reason, fix: row.fix ?? '' };
}

function missingPlugins(discovery: Discovery, { tracer, metrics }: Config): PluginState[] {
  const wanted = [
    {
      kind: 'tracer',
      name: tracer.type,
      setting: 'tracer.type (--tracer-type, GATEWAY_TRACER_PROVIDER)',
    },
    {
      kind: 'metrics',
      name: metrics.metrics_backend,
      setting: 'metrics.metrics_backend (--metrics-backend, GATEWAY_METRICS_BACKEND)',
    },
  ] as const;
  return wanted.flatMap(({ kind, name, setting }) => {
    const installed = [...discovery.plugins, ...discovery.refused]
      .filter((it) => it.kind === kind)
      .map((it) => it.name);
    if (!name || installed.includes(name)) return [];
    const error = new GatewayError('plugin_missing', {
      kind,
      name,
      setting,
      hint: didYouMean(name, installed),
    });
    return [pluginState({ name, kind, version: '', from: '' }, error)];
  });
}

/** The configuration does not request these plugins. */
const IDLE = [
  'plugin_not_selected',
  'plugin_flag_off',
  'metrics_no_backend',
  'metrics_off',
  'metrics_closed',
];

/** The plugin is selected, or inactive for a reason other than not being requested. */
export function isMissed(
  { name, kind, state, code = '' }: PluginState,
  { tracer, metrics }: Config,
): boolean {
  if (state === 'active') return false;
  const isSelected =
    (kind === 'tracer' && name === tracer.type) ||
    (kind === 'metrics' && name === metrics.metrics_backend && metrics.enabled);
  return isSelected || !IDLE.includes(code);
}

/**
 * Imports nothing. Checks, in order, the API range, selection, feature flag, licence, schema of the
 * connection and settings. For metrics backends, lists all unmet conditions except the settings.
 */
export function whyInactive(
  plugin: InstalledPlugin,
  resolved: Resolved,
  licence: Licence,
): GatewayError | undefined {
  const { kind, name, api, package: from, version } = plugin;
  if (!satisfies(API_VERSION, api))
    return new GatewayError('plugin_api', {
      kind,
      name,
      package: from,
      version,
      range: api,
      ours: API_VERSION,
    });
  const closed = closedGates(plugin, resolved, licence);
  if (kind === 'metrics' && closed.length > 1) {
    return new GatewayError('metrics_closed', {
      gates: closed.map(({ message, fix }) => ({ reason: message, fix })),
    });
  }
  if (closed[0]) return closed[0];
  const { connectionSchema: schema, manifest } = plugin;
  const broken = schema && !isOurs(plugin) && connectionSchemaProblem(schema);
  if (broken)
    return new GatewayError('plugin_manifest_broken', {
      package: from,
      reason: `${manifest.connection} ${broken}`,
    });
  const problems: SettingProblem[] = resolved.pluginProblems.filter(({ key }) => plugin.rows[key]);
  for (const key of missingSettings(plugin, resolved))
    problems.push({ key, origin: 'default', sentence: `${key} is not set` });
  return problems.length > 0 ? new GatewayError('plugin_settings', { problems }) : undefined;
}

function closedGates(
  { kind, name, manifest }: InstalledPlugin,
  { config, origins }: Resolved,
  licence: Licence,
): GatewayError[] {
  const { featureFlag: flag, entitlement } = manifest;
  const { metrics_backend: selected, enabled } = config.metrics;
  const closed: GatewayError[] = [];
  if (kind === 'tracer' && config.tracer.type !== name) {
    const how = `set tracer.type to ${name} (--tracer-type, GATEWAY_TRACER_PROVIDER)`;
    closed.push(new GatewayError('plugin_not_selected', { how }));
  }
  if (kind === 'metrics' && selected !== name)
    closed.push(new GatewayError('metrics_no_backend', { name, selected }));
  if (kind === 'metrics' && !enabled) {
    const origin = origins.get('metrics.enabled');
    closed.push(
      new GatewayError('metrics_off', { origin: origin === 'default' ? undefined : origin }),
    );
  }
  if (flag && !config.enable_feature_flag.includes(flag))
    closed.push(new GatewayError('plugin_flag_off', { flag }));
  if (entitlement && !licence.entitlements.has(entitlement)) {
    const whose =
      licence.kind === 'community'
        ? 'the community licence'
        : `the licence of ${licence.organisation}`;
    closed.push(new GatewayError('plugin_not_entitled', { entitlement, licence: whose }));
  }
  return closed;
}

/** Invalid values are reported elsewhere. */
export function missingSettings(
  { rows }: InstalledPlugin,
  { config, pluginProblems }: Resolved,
): string[] {
  return Object.entries(rows)
    .filter(
      ([key, row]) =>
        row.required &&
        settingAt(config, key) === undefined &&
        !pluginProblems.some((it) => it.key === key),
    )
    .map(([key]) => key);
}

interface FlagState {
  readonly name: string;
  readonly enabled: boolean;
  /**
   * A command-line flag, an environment variable or the file. `default` if the flag was not
   * enabled.
   */
  readonly origin: string;
  readonly stability: FeatureFlag['stability'];
  readonly declared_by: string;
  readonly summary: string;
}

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
