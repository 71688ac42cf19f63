import { discover, type Discovery } from '@gateway/core/plugins';
import { pluginsDirOf } from '@gateway/core/config';

let current: Discovery | undefined;
let currentRoot = '';

/**
 * Looks up the plugins of an installation, before the commands are loaded: their settings become flags.
 *
 * @param root folder whose `package.json` names the built-in plugins
 * @param file the configuration file, which may name another plugin folder
 */
export function useInstallation({ root, file }: { root: string; file: string | undefined }): Discovery {
  currentRoot = root;
  current = discover({ root, pluginsDir: pluginsDirOf({ file }) });
  return current;
}

/** The installation in use. */
export function installation(): Discovery {
  if (!current) throw new Error('no installation is in use');
  return current;
}

/** Its folder. */
export function root(): string {
  return currentRoot;
}
