import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { GatewayError } from '../errors/errors.js';
import type { InstalledPlugin } from './manifest.js';

/** The default export of a module of a plugin, which must have these functions: from here on its code runs. Throws GatewayError `plugin_import`. */
export async function importDefault<Plugin = unknown>(
  { manifest, folder, package: packageName }: InstalledPlugin,
  functions: readonly string[] = [],
  file: string = manifest.module,
): Promise<Plugin> {
  const failed = (reason: string, cause?: unknown) =>
    new GatewayError('plugin_import', { module: `${packageName}/${file.replace(/^\.\//, '')}`, reason }, { cause });
  let exported: unknown;
  try {
    exported = ((await import(pathToFileURL(join(folder, file)).href)) as { default?: unknown }).default;
  } catch (cause) {
    throw failed(cause instanceof Error ? cause.message : String(cause), cause);
  }
  if (exported === undefined || exported === null) throw failed('it has no default export');
  const missing = functions.find((it) => typeof (exported as Record<string, unknown>)[it] !== 'function');
  if (missing !== undefined) throw failed(`its default export has no function ${missing}`);
  return exported as Plugin;
}
