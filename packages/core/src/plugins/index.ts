export { activate, type ActivatedPlugins, type ActiveSource } from './activation.js';
export { type CheckedConfig } from './config-check.js';
export { discover, type Discovery, type RefusedPlugin } from './discovery.js';
export { importDefault } from './import-plugin.js';
export { generateLicenceKey, issueLicence } from './licence-issue.js';
export { COMMUNITY_ENTITLEMENTS, knownEntitlements, type Licence, publicKeyText, readLicence, unknownEntitlements } from './licence.js';
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
export { pluginApiPath } from './plugin-api-path.js';
export { whyInactive } from './plugin-gates.js';
export { isMissed, type PluginState, pluginState } from './plugin-table.js';
export { checkConfig } from './config-check.js';
export { previewPlugins } from './plugin-table.js';
