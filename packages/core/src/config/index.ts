export {
  type ConfigOptions,
  editorCommand,
  nest,
  pluginsDirOf,
  readConfig,
  type ReadConfig,
  resolveConfig,
  type Resolved,
} from './config.js';
export { changedSecretFiles, type FlagValues, type FoundProblem } from './given-value.js';
export { presentConfig, presentOrigins } from './present-config.js';
export { crossChecks, serverChecks } from './cross-checks.js';
export { type LibpqOptions, parseDatabaseOptions } from './database-options.js';
export {
  envOf,
  flagsOf,
  keysOf,
  settingAt,
  settings,
  type Setting,
  type SettingsTable,
  type Config,
} from './settings.js';
export { formats, hostAndPort, parseSetting } from './parse-value.js';
export { linksOf, type Links } from './links.js';
