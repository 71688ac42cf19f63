import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { GatewayError } from '../errors/errors.js';
import type { InstalledPlugin } from './manifest.js';

/**
 * Imports a module of a plugin: from here on its code runs.
 *
 * @param file of its package; the module of the manifest without one
 * @returns the default export
 * @throws GatewayError `plugin_import` when that fails or has none
 */
export async function importDefault(
  { kind, name, manifest, folder, package: packageName }: InstalledPlugin,
  file: string = manifest.module,
): Promise<unknown> {
  const refused = (reason: string, cause?: unknown) =>
    new GatewayError('plugin_import', { kind, name, module: `${packageName}/${file.replace(/^\.\//, '')}`, reason }, { cause });
  let module: { default?: unknown };
  try {
    module = (await import(pathToFileURL(join(folder, file)).href)) as typeof module;
  } catch (cause) {
    throw refused(cause instanceof Error ? cause.message : String(cause), cause);
  }
  if (module.default === undefined || module.default === null) throw refused('it has no default export');
  return module.default;
}

/**
 * Imports a plugin.
 *
 * @param functions that it has to have
 * @throws GatewayError `plugin_import`
 */
export async function importPlugin<Plugin>(plugin: InstalledPlugin, functions: readonly string[]): Promise<Plugin> {
  const imported = (await importDefault(plugin)) as Record<string, unknown>;
  const missing = functions.find((it) => typeof imported[it] !== 'function');
  if (missing === undefined) return imported as Plugin;
  const { kind, name, manifest, package: packageName } = plugin;
  const module = `${packageName}/${manifest.module.replace(/^\.\//, '')}`;
  throw new GatewayError('plugin_import', { kind, name, module, reason: `its default export has no function ${missing}` });
}
