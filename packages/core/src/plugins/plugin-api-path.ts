import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of `@gateway/plugin` as this gateway uses it, for plugins that are installed elsewhere. */
export function pluginApiPath(): string {
  return dirname(dirname(fileURLToPath(import.meta.resolve('@gateway/plugin'))));
}
