import { pluginsDirOf, type Config, type Resolved } from '@gateway/core/config';
import type { Log } from '@gateway/core/logging';
import {
  activate,
  discover,
  readLicence,
  type ActivatedPlugins,
  type Discovery,
  type Licence,
} from '@gateway/core/plugins';

let current: Discovery | undefined;
let currentRoot = '';

/**
 * Discovers plugins before the commands are loaded: their settings become flags.
 *
 * @param root folder whose `package.json` names the built-in plugins
 * @param file the configuration file, which can name another plugin folder
 */
export function useInstallation({
  root,
  file,
}: {
  root: string;
  file: string | undefined;
}): Discovery {
  currentRoot = root;
  current = discover({ root, pluginsDir: pluginsDirOf({ file }) });
  return current;
}

/** Returns the installation in use; throws if there is none. */
export function installation(): Discovery {
  if (!current) throw new Error('no installation is in use');
  return current;
}

/** Returns the installation's folder. */
export function root(): string {
  return currentRoot;
}

/** Returns the licence of the settings, or its problem. */
export function licenceOf({ license_key: token, license_public_key: publicKey }: Config): Licence {
  return readLicence({ token, publicKey });
}

/** Starts the plugins that settings, feature flags and licence allow. */
export function startPlugins(
  resolved: Resolved,
  { licence, serviceName, log }: { licence: Licence; serviceName: string; log: Log },
): Promise<ActivatedPlugins> {
  return activate({ discovery: installation(), resolved, licence, serviceName, log });
}
