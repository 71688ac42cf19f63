export {
  type ConfigOptions,
  editorCommand,
  type FoundProblem,
  type FlagValues,
  pluginsDirOf,
  presentConfig,
  presentOrigins,
  readConfig,
  type ReadConfig,
  resolveConfig,
  type Resolved,
} from './config.js';
export { crossChecks, signInChecks } from './cross-checks.js';
export { type DatabaseOptions, parseDatabaseOptions } from './database-options.js';
export {
  envOf,
  flagsOf,
  keysOf,
  type Setting,
  type SettingsTable,
  type Config,
} from './settings.js';
export { formats } from './parse-value.js';
