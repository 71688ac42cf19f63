import type { Config, Resolved } from '@gateway/core/config';
import type { Log } from '@gateway/core/logging';
import { activate, readLicence, type ActivatedPlugins, type Licence } from '@gateway/core/plugins';
import { installation } from './installation.js';

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
