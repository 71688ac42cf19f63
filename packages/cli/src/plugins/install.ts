import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { discover, type Discovery, type InstalledPlugin, isPluginPackage, whyInactive } from '@gateway/core/plugins';
import { readConfig, type ConfigOptions } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import { licenceOf } from '../app/installation.js';
import { PluginFolder } from './plugin-folder.js';

/** A plugin that was installed, and why it is not active yet. */
export interface Installed {
  readonly plugin: InstalledPlugin;
  readonly refusal: GatewayError | undefined;
}

/** How a package gets into the plugin folder. */
export interface InstallOptions {
  /** The installation as it was before. */
  readonly before: Discovery;
  readonly root: string;
  /** Where the settings are read. Those of a plugin may be there before it is, so mistakes in them do not matter here. */
  readonly settings: ConfigOptions;
  readonly link?: boolean;
  readonly allowScripts?: boolean;
}

/**
 * Installs a package into the plugin folder and looks at what it declares, without importing any of it. When it could never become active (no manifest, a
 * broken one, a module that is not there, a claim on what belongs to another, an API range that does not fit), the folder becomes what it was before.
 *
 * @param spec `name@range`, or a folder or tarball on this machine
 * @throws GatewayError `npm_failed`, `npm_missing`, `not_a_plugin`, `plugin_manifest_broken`, `plugin_setting_claimed`, `plugin_api`,
 * `plugins_dir_unwritable`
 */
export async function installPlugin(spec: string, options: InstallOptions): Promise<Installed[]> {
  const { link = false, allowScripts = false } = options;
  const folder = new PluginFolder(readConfig(options.settings).config.plugins.dir);
  try {
    const { names, undo } = await folder.install(located(spec), { link, allowScripts });
    try {
      return examined(folder, names, options);
    } catch (error) {
      await undo();
      throw error;
    }
  } finally {
    folder.sweep();
  }
}

/** The plugins of these packages. Throws when one of them, or one that was fine before, could never become active now. */
function examined(folder: PluginFolder, names: readonly string[], { before, root, settings, link }: InstallOptions): Installed[] {
  for (const name of names) {
    if (!isPluginPackage(folder.packageJson(name) ?? {})) {
      throw new GatewayError('not_a_plugin', { package: name, reason: 'its package.json has no `gateway` object' });
    }
  }
  const after = discover({ root, pluginsDir: folder.path });
  const earlier = before.refused.map(({ error }) => error.message);
  const refused = after.refused.find(
    (it) => it.from === folder.path && (names.includes(it.package) || !earlier.includes(it.error.message)),
  );
  if (refused) throw refused.error;

  const resolved = readConfig({ ...settings, rows: after.rows });
  const licence = licenceOf(resolved.config);
  const plugins = after.plugins.filter((it) => it.from === folder.path && names.includes(it.package));
  return plugins.map((plugin) => {
    const refusal = whyInactive(plugin, resolved, licence);
    if (refusal?.code === 'plugin_api') throw refusal;
    // The folder of a link may be built later.
    if (!link) requireModule(plugin);
    return { plugin, refusal };
  });
}

function requireModule({ folder, manifest: { module }, package: name }: InstalledPlugin): void {
  if (existsSync(join(folder, module))) return;
  const reason = `it names the module ${module}, which is not in the package; was it built before it was packed?`;
  throw new GatewayError('plugin_manifest_broken', { package: name, reason });
}

/** What npm is given: paths are made absolute, since npm runs elsewhere. */
function located(spec: string): string {
  const path = resolve(spec.replace(/^file:/, ''));
  const isPath = /^(?:file:|\.{1,2}$|\.{0,2}[/\\]|[A-Za-z]:\\)/.test(spec) || /\.t(?:ar\.)?gz$/.test(spec);
  if (!existsSync(path)) {
    if (!isPath || /^https?:/.test(spec)) return spec;
    throw new GatewayError('not_a_plugin', { package: spec, reason: 'there is no such folder or file' });
  }
  if (!isPath && !spec.includes('/')) return spec;
  if (statSync(path).isDirectory() && !existsSync(join(path, 'package.json'))) {
    throw new GatewayError('not_a_plugin', { package: spec, reason: 'the folder has no package.json' });
  }
  return path;
}
