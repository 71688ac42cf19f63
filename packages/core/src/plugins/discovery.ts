import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { GatewayError } from '../errors/errors.js';
import {
  BrokenManifest,
  isPluginPackage,
  readPlugins,
  versionOf,
  type InstalledPlugin,
  type PackageJson,
} from './manifest.js';
import {
  envOf,
  keysOf,
  settings,
  withFlags,
  type FeatureFlag,
  type FlagTable,
  type Setting,
  type SettingsTable,
} from '../config/settings.js';

/** Described by their manifests. No plugin code is imported. */
export interface Discovery {
  readonly plugins: readonly InstalledPlugin[];
  /** No configuration can make them usable. */
  readonly refused: readonly RefusedPlugin[];
  readonly rows: SettingsTable;
  readonly flags: FlagTable;
}

interface RefusedPlugin {
  /** The package name if the manifest is unreadable. */
  readonly name: string;
  readonly package: string;
  readonly kind?: InstalledPlugin['kind'];
  readonly version: string;
  readonly from: string;
  readonly error: GatewayError;
}

/**
 * Reads the manifests of the plugins installed with the gateway and, if it exists, in the plugin
 * folder.
 *
 * @param root the folder of the command; candidates are the dependencies in its `package.json` and
 *   in that of the folder where the command is installed
 */
export function discover({
  root,
  pluginsDir,
}: {
  root: string;
  pluginsDir?: string | undefined;
}): Discovery {
  const found: InstalledPlugin[] = [];
  const refused: RefusedPlugin[] = [];
  const rows: Record<string, Setting> = { ...settings };
  const flags: Record<string, FeatureFlag> = {};
  const inFolder = pluginsDir && resolve(pluginsDir);
  for (const { name, folder } of candidates(root, inFolder)) {
    const packageFolder = locate(name, folder);
    const from = folder === inFolder ? folder : 'the installation';
    const json = packageFolder && packageJson(packageFolder);
    const version = json ? versionOf(json) : '';
    const refuse = (error: GatewayError, plugin?: InstalledPlugin) =>
      refused.push({
        name: plugin?.name ?? name,
        package: name,
        ...(plugin ? { kind: plugin.kind } : {}),
        version,
        from,
        error,
      });
    // Not needed at run time: plugins get the gateway's own copy.
    if (!json && folder === inFolder && name !== '@gateway/plugin')
      refuse(new GatewayError('plugin_not_installed', { package: name, folder }));
    if (!json || !isPluginPackage(json)) continue;
    try {
      for (const plugin of readPlugins(packageFolder, json, from)) {
        const claim = clash(plugin, found, rows, flags);
        if (claim) {
          refuse(
            new GatewayError('plugin_setting_claimed', {
              kind: plugin.kind,
              name: plugin.name,
              ...claim,
            }),
            plugin,
          );
          continue;
        }
        found.push(plugin);
        Object.assign(rows, plugin.rows);
        Object.assign(flags, plugin.flags);
      }
    } catch (cause) {
      if (!(cause instanceof BrokenManifest)) throw cause;
      refuse(
        new GatewayError(
          'plugin_manifest_broken',
          { package: name, reason: cause.message },
          { cause },
        ),
      );
    }
  }
  return { plugins: found, refused, rows: withFlags(rows, flags), flags };
}

/**
 * The first declaration, such as a setting, that another plugin has already made, and its owner.
 */
function clash(
  plugin: InstalledPlugin,
  found: readonly InstalledPlugin[],
  rows: SettingsTable,
  flags: FlagTable,
) {
  const twin = found.find((other) => other.kind === plugin.kind && other.name === plugin.name);
  if (twin) return { what: `the name ${plugin.name}`, owner: `the package ${twin.package}` };
  for (const [name, flag] of Object.entries(flags)) {
    if (plugin.flags[name]) return { what: `the feature flag ${name}`, owner: flag.declaredBy };
  }
  const claimed: [string, Setting][] = Object.entries(rows);
  for (const [key, row] of Object.entries(plugin.rows)) {
    for (const [otherKey, other] of claimed) {
      const owner = `${other.owner ?? 'the gateway'} (${otherKey})`;
      const overlaps = (it: string) =>
        keysOf(otherKey, other).some(
          (known) => `${it}.`.startsWith(`${known}.`) || known.startsWith(`${it}.`),
        );
      const taken = keysOf(key, row).find(overlaps);
      if (taken !== undefined) return { what: `the setting ${taken}`, owner };
      if (envOf(key, row) === envOf(otherKey, other))
        return { what: `the variable ${envOf(key, row)}`, owner };
      if (row.flag && [other.flag, other.alias?.flag].includes(row.flag))
        return { what: `the flag --${row.flag}`, owner };
    }
    claimed.push([key, row]);
  }
  return undefined;
}

/** Each with the folder whose `package.json` lists it. */
function candidates(root: string, pluginsDir: string | undefined) {
  const own = dependencies(root);
  const host = hostOf(root);
  const beside = host ? dependencies(host).filter((name) => !own.includes(name)) : [];
  return [
    ...own.map((name) => ({ name, folder: root })),
    ...beside.map((name) => ({ name, folder: host! })),
    ...(pluginsDir ? dependencies(pluginsDir).map((name) => ({ name, folder: pluginsDir })) : []),
  ];
}

/** The nearest parent with a `package.json`. */
function hostOf(root: string): string | undefined {
  for (let folder = dirname(root); ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

function dependencies(folder: string): string[] {
  const named = packageJson(folder)?.['dependencies'];
  return named && typeof named === 'object' ? Object.keys(named) : [];
}

function packageJson(folder: string): PackageJson | undefined {
  try {
    const json: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    return json && typeof json === 'object' ? (json as PackageJson) : undefined;
  } catch {
    return undefined;
  }
}

/** Like Node.js, but ignores `exports`. */
function locate(name: string, from: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', name);
    if (existsSync(join(candidate, 'package.json'))) return candidate;
    if (dirname(folder) === folder) return undefined;
  }
}
