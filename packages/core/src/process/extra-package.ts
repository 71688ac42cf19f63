import { GatewayError } from '../errors/errors.js';
import { VERSION } from './version.js';

/** Packages that an installation has only if it names them. None of the others imports them. */
type ExtraPackage =
  '@gateway/archive' | '@gateway/convoy' | '@gateway/dev' | '@gateway/plugin-conformance';

/**
 * @param neededBy the setting or the command, for the error
 * @throws GatewayError `package_missing`
 */
export async function importExtra<Exports>(name: ExtraPackage, neededBy: string): Promise<Exports> {
  const missing = missingExtra(name, neededBy);
  if (missing) throw missing;
  return (await import(name)) as Exports;
}

/** Undefined if the package is installed. */
export function missingExtra(
  name: ExtraPackage,
  neededBy: string,
): GatewayError<'package_missing'> | undefined {
  try {
    import.meta.resolve(name);
    return undefined;
  } catch (cause) {
    return new GatewayError('package_missing', { name, neededBy, version: VERSION }, { cause });
  }
}
