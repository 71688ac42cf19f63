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
 * Must be called before commands are loaded, because plugin settings become flags.
 *
 * @param root the folder whose `package.json` lists the built-in plugins
 * @param file the configuration file, which can set another plugin folder
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

/** Throws if `useInstallation` was not called. */
export function installation(): Discovery {
  if (!current) throw new Error('no installation is in use');
  return current;
}

export function root(): string {
  return currentRoot;
}

/** If the configured licence is invalid, the community licence with the problem. */
export function licenceOf({ license_key: token, license_public_key: publicKey }: Config): Licence {
  return readLicence({ token, publicKey });
}

/** Only plugins allowed by the settings, feature flags and licence. */
export function startPlugins(
  resolved: Resolved,
  { licence, serviceName, log }: { licence: Licence; serviceName: string; log: Log },
): Promise<ActivatedPlugins> {
  return activate({ discovery: installation(), resolved, licence, serviceName, log });
}
