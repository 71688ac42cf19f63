import { API_VERSION, type Discovery, type PluginManifest, pluginState, type PluginState, whyInactive } from '@gateway/core/plugins';
import { envOf, presentOrigins, type Resolved } from '@gateway/core/config';
import { licenceOf } from '../app/installation.js';
import { textTable } from '../output/table.js';
import { findPlugins } from './find.js';

/** A plugin with everything that can be known of it without importing it. */
export interface Inspection extends PluginState {
  readonly package: string;
  readonly folder?: string;
  readonly api?: { readonly wants: string; readonly gateway: string };
  readonly manifest?: PluginManifest;
  readonly settings?: readonly InspectedSetting[];
}

interface InspectedSetting {
  readonly key: string;
  readonly env: string;
  readonly flag: string | null;
  readonly type: string;
  readonly value: unknown;
  readonly origin: string;
  readonly summary: string;
}

/** The plugins of that name. Throws GatewayError `plugin_unknown`. */
export function inspectPlugins(name: string, { discovery, resolved }: { discovery: Discovery; resolved: Resolved }): Inspection[] {
  const { plugins, refused } = findPlugins(name, discovery);
  const shown = presentOrigins(resolved);
  const licence = licenceOf(resolved.config);
  return [
    ...plugins.map((plugin) => ({
      ...pluginState(plugin, whyInactive(plugin, resolved, licence)),
      package: plugin.package,
      folder: plugin.folder,
      api: { wants: plugin.api, gateway: API_VERSION },
      manifest: plugin.manifest,
      settings: Object.entries(plugin.rows).map(([key, row]) => ({
        key,
        env: envOf(key, row),
        flag: row.flag ? `--${row.flag}` : null,
        type: row.type,
        value: shown[key]?.value ?? null,
        origin: shown[key]?.origin ?? 'default',
        summary: row.summary,
      })),
    })),
    ...refused.map((it) => ({ ...pluginState(it, it.error), package: it.package })),
  ];
}

/** The same for a person. */
export function inspectionText(it: Inspection, width = process.stdout.columns): string {
  const { featureFlag, entitlement, connection } = it.manifest ?? {};
  const facts = [
    ['name', it.name],
    ['kind', it.kind],
    ['package', `${it.package} ${it.version}`.trim()],
    ['from', it.folder ?? it.from],
    ['plugin API', it.api ? `wants ${it.api.wants}, this gateway has ${it.api.gateway}` : ''],
    ['feature flag', featureFlag ?? ''],
    ['entitlement', entitlement ?? ''],
    ['connection', connection ?? ''],
    ['state', it.reason ? `${it.state}: ${it.reason}; ${it.fix}` : it.state],
  ].filter(([, value]) => value !== '') as [string, string][];
  const settings = it.settings ?? [];
  if (settings.length === 0) return textTable(facts, width);
  const rows = settings.map(({ key, env, flag, value, origin, summary }) => [key, flag ?? '', env, JSON.stringify(value), origin, summary]);
  return `${textTable(facts, width)}\n\n${textTable([['SETTING', 'FLAG', 'VARIABLE', 'VALUE', 'ORIGIN', 'SUMMARY'], ...rows], width)}`;
}
