export { activate, type ActivatedPlugins, type ActiveSource } from './activation.js';
export { canonicalConnection } from './connection.js';
export { discover, type Discovery } from './discovery.js';
export { importDefault, importPlugin } from './import-plugin.js';
export {
  COMMUNITY_ENTITLEMENTS,
  knownEntitlements,
  type Licence,
  type LicenceFields,
  publicKeyId,
  publicKeyText,
  readLicence,
  unknownEntitlements,
} from './licence.js';
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
export { missingSettings, whyInactive } from './plugin-gates.js';
export { importedPlugins, isMissed, previewPlugins, type PluginState } from './plugin-table.js';
