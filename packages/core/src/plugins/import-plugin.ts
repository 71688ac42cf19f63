import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { PluginKind } from '@gateway/plugin';
import { API_VERSION } from '@gateway/plugin/manifest';
import { GatewayError, isGatewayError } from '../errors/errors.js';
import { withTimeout } from '../process/timing.js';
import { isOurs, type InstalledPlugin } from './manifest.js';
import { resolveOwnPluginApi } from './own-plugin-api.js';
import { readableError, untilFault } from './plugin-faults.js';

/**
 * For an import, and separately for a start. A top-level await that never settles must not block
 * the process.
 */
export const PLUGIN_DEADLINE_MS = 10_000;

const FUNCTIONS: Readonly<Record<PluginKind, readonly string[]>> = {
  source: ['check', 'run'],
  codec: ['open'],
  tracer: ['start'],
  metrics: ['start'],
};
const PUSH_FUNCTIONS = ['check', 'verify', 'receive'];

/**
 * Runs the plugin's code, and checks that it exports the functions of its kind.
 * @throws GatewayError `plugin_import`
 */
export async function importPlugin<Plugin>(
  plugin: InstalledPlugin,
  deadlineMs?: number,
): Promise<Plugin> {
  const { kind, manifest } = plugin;
  const exported = await importDefault<Plugin>(plugin, manifest.module, deadlineMs);
  const isFunction = (name: string) => {
    try {
      return typeof (exported as Record<string, unknown>)[name] === 'function';
    } catch {
      return false;
    }
  };
  const functions = manifest.sourceKind === 'push' ? PUSH_FUNCTIONS : FUNCTIONS[kind];
  const missing = functions.find((it) => !isFunction(it));
  if (missing !== undefined)
    throw importFailed(plugin, manifest.module, `its default export has no function ${missing}`);
  return exported;
}

/** @throws GatewayError `plugin_import` if the import fails or there is no default export */
export async function importDefault<Export = unknown>(
  plugin: InstalledPlugin,
  file = plugin.manifest.module,
  deadlineMs = PLUGIN_DEADLINE_MS,
): Promise<Export> {
  if (!isOurs(plugin)) resolveOwnPluginApi();
  try {
    const importing = untilFault(async () => {
      const module = (await import(pathToFileURL(join(plugin.folder, file)).href)) as {
        default?: Export;
      };
      // Settled here, because a default export may be a thenable that never settles.
      return module.default;
    });
    const late = `it did not finish within ${deadlineMs / 1000} s; a top-level await may never settle`;
    const exported = await withTimeout(importing, deadlineMs, late);
    if (exported === undefined || exported === null)
      throw importFailed(plugin, file, 'it has no default export');
    return exported;
  } catch (thrown) {
    const cause = readableError(thrown);
    if (isGatewayError(cause)) throw cause;
    throw importFailed(plugin, file, cause.message.replace(/\.$/, ''), cause);
  }
}

/** Node.js messages for a missing export and a missing subpath. */
const NOT_EXPORTED = [
  /requested module '(?<module>@gateway\/plugin[^']*)' does not provide an export named '(?<name>[^']+)'/,
  /Package subpath '\.(?<subpath>\/[^']+)' is not defined by "exports" in .*@gateway[\\/](?<folder>plugin[^\\/]*)[\\/]package\.json/,
];

function importFailed(
  plugin: InstalledPlugin,
  file: string,
  reason: string,
  cause?: unknown,
): GatewayError {
  const module = `${plugin.package}/${file.replace(/^\.\//, '')}`;
  const missing = NOT_EXPORTED.map((sign) => sign.exec(reason)?.groups).find(
    (it) => it !== undefined,
  );
  if (!missing) return new GatewayError('plugin_import', { module, reason }, { cause });
  const what =
    missing['name'] === undefined
      ? `@gateway/${missing['folder']}${missing['subpath']}`
      : `${missing['name']} of ${missing['module']}`;
  const fix = `install a version of ${plugin.package} for plugin API ${API_VERSION}; its author narrows \`gateway.api\`, which is ${plugin.api}`;
  return new GatewayError(
    'plugin_import',
    { module, reason: `it imports ${what}, which plugin API ${API_VERSION} does not have`, fix },
    { cause },
  );
}
