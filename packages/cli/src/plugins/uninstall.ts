import type { Discovery } from '@gateway/core/plugins';
import { GatewayError } from '@gateway/core/errors';
import { findPlugins } from './find.js';
import { PluginFolder } from './plugin-folder.js';

/**
 * Removes the package of a plugin from the plugin folder.
 *
 * @param name of the package, or of a plugin in it
 * @returns the name of the package
 * @throws GatewayError `plugin_unknown`; `wrong_use` for a plugin of the installation; what npm throws
 */
export async function uninstallPlugin(name: string, { discovery, dir }: { discovery: Discovery; dir: string }): Promise<string> {
  const folder = new PluginFolder(dir);
  const packages = folder.packages();
  const found = packages.includes(name) ? [{ package: name }] : Object.values(findPlugins(name, discovery)).flat();
  const named = found.find((it) => packages.includes(it.package))?.package;
  if (named === undefined) {
    throw new GatewayError('wrong_use', {
      sentence: `${name} belongs to the installation of the gateway and cannot be removed`,
      fix: 'leave it inactive: a plugin that nothing selects is never loaded',
    });
  }
  await folder.uninstall(named);
  return named;
}
