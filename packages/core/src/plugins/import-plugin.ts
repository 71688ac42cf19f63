import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { GatewayError } from '../errors/errors.js';
import type { InstalledPlugin } from './manifest.js';

/**
 * Imports a module of a plugin: from here on its code runs.
 *
 * @param file of its package; the module of the manifest by default
 * @param functions that the default export must have
 * @returns the default export
 * @throws GatewayError `plugin_import`
 */
export async function importDefault(
  { kind, name, manifest, folder, package: packageName }: InstalledPlugin,
  file: string = manifest.module,
  functions: readonly string[] = [],
): Promise<unknown> {
  const failed = (reason: string, cause?: unknown) =>
    new GatewayError('plugin_import', { kind, name, module: `${packageName}/${file.replace(/^\.\//, '')}`, reason }, { cause });
  let exported: unknown;
  try {
    exported = ((await import(pathToFileURL(join(folder, file)).href)) as { default?: unknown }).default;
  } catch (cause) {
    throw failed(cause instanceof Error ? cause.message : String(cause), cause);
  }
  if (exported === undefined || exported === null) throw failed('it has no default export');
  const missing = functions.find((it) => typeof (exported as Record<string, unknown>)[it] !== 'function');
  if (missing !== undefined) throw failed(`its default export has no function ${missing}`);
  return exported;
}

/** Imports a plugin whose default export must have these functions. Throws as `importDefault` does. */
export async function importPlugin<Plugin>(plugin: InstalledPlugin, functions: readonly string[]): Promise<Plugin> {
  return (await importDefault(plugin, plugin.manifest.module, functions)) as Plugin;
}
