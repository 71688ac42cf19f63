import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { PluginKind } from '@gateway/plugin';
import { GatewayError, isGatewayError } from '../errors/errors.js';
import { withTimeout } from '../process/timing.js';
import type { InstalledPlugin } from './manifest.js';

/** Milliseconds that importing a plugin may take, and then its start: a top-level await that never settles must not hold the process. */
export const PLUGIN_DEADLINE_MS = 10_000;

/** What the default export of each kind must have. */
const FUNCTIONS: Readonly<Record<PluginKind, readonly string[]>> = { source: ['check', 'run'], tracer: ['start'], metrics: ['start'] };

/** The plugin, checked to have the functions of its kind: from here on its code runs. Throws GatewayError `plugin_import`. */
export async function importPlugin<Plugin>(plugin: InstalledPlugin, deadlineMs?: number): Promise<Plugin> {
  const { kind, manifest } = plugin;
  const exported = await importDefault<Plugin>(plugin, manifest.module, deadlineMs);
  const missing = FUNCTIONS[kind].find((it) => typeof (exported as Record<string, unknown>)[it] !== 'function');
  if (missing !== undefined) throw importFailed(plugin, manifest.module, `its default export has no function ${missing}`);
  return exported;
}

/** The default export of a module of a plugin's package. Throws GatewayError `plugin_import`. */
export async function importDefault<Export = unknown>(
  plugin: InstalledPlugin,
  file = plugin.manifest.module,
  deadlineMs = PLUGIN_DEADLINE_MS,
): Promise<Export> {
  try {
    const importing = import(pathToFileURL(join(plugin.folder, file)).href) as Promise<{ default?: Export }>;
    const late = `it has not ended after ${deadlineMs / 1000} s; a top-level await may never settle`;
    const { default: exported } = await withTimeout(importing, deadlineMs, late);
    if (exported === undefined || exported === null) throw importFailed(plugin, file, 'it has no default export');
    return exported;
  } catch (cause) {
    if (isGatewayError(cause)) throw cause;
    throw importFailed(plugin, file, cause instanceof Error ? cause.message : String(cause), cause);
  }
}

function importFailed(plugin: InstalledPlugin, file: string, reason: string, cause?: unknown): GatewayError {
  return new GatewayError('plugin_import', { module: `${plugin.package}/${file.replace(/^\.\//, '')}`, reason }, { cause });
}
