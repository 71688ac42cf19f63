export {
  activate,
  type ActivatedPlugins,
  type ActiveCodec,
  type ActivePush,
  type ActiveSource,
} from './activation.js';
export { canonicalConnection } from './connection-fields.js';
export { discover, type Discovery } from './discovery.js';
export type { GuardedCodec, OpenCodec } from './guarded-codec.js';
export { type GuardedPush, pushFailed } from './guarded-push.js';
export { importDefault, importPlugin } from './import-plugin.js';
export { type Licence, licenceRecord, readLicence, unknownEntitlements } from './licence.js';
export {
  API_VERSION,
  BrokenManifest,
  type InstalledPlugin,
  isPluginName,
  isPluginPackage,
  KINDS,
  type PackageJson,
  readPlugins,
} from './manifest.js';
export {
  flagStates,
  missingSettings,
  whyInactive,
  importedPlugins,
  isMissed,
  previewPlugins,
  type PluginState,
  whySourceInactive,
} from './plugin-table.js';
export { blamePlugin } from './plugin-faults.js';
