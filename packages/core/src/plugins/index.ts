export { activate, type ActivatedPlugins, type ActiveSource } from './activation.js';
export { discover, type Discovery, type RefusedPlugin } from './discovery.js';
export { importDefault } from './import-plugin.js';
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
  homeOf,
  type InstalledPlugin,
  isPluginName,
  isPluginPackage,
  KINDS,
  type PackageJson,
  type PluginKind,
  type PluginManifest,
  readPlugins,
} from './manifest.js';
export { missingSettings, whyInactive } from './plugin-gates.js';
export { isMissed, previewPlugins, type PluginState, pluginState } from './plugin-table.js';
