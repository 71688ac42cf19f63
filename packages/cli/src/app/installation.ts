import { pluginsDirOf, type Config, type Resolved } from '@gateway/core/config';
import type { Log } from '@gateway/core/logging';
import { activate, discover, readLicence, type ActivatedPlugins, type Discovery, type Licence } from '@gateway/core/plugins';

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

/** The licence that the settings name, or what is wrong with it. */
export function licenceOf({ license_key: token, license_public_key: publicKey }: Config): Licence {
  return readLicence({ token, publicKey });
}

/** Starts the plugins of the installation that settings, feature flags and licence allow. */
export function startPlugins(
  resolved: Resolved,
  { licence, serviceName, log }: { licence: Licence; serviceName: string; log: Log },
): Promise<ActivatedPlugins> {
  return activate({ discovery: installation(), resolved, licence, serviceName, log });
}
