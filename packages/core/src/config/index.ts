export {
  type ConfigOptions,
  editorCommand,
  type FlagValues,
  pluginsDirOf,
  presentConfig,
  presentOrigins,
  readConfig,
  type ReadConfig,
  resolveConfig,
  type Resolved,
} from './config.js';
export { crossChecks } from './cross-checks.js';
export { type DatabaseOptions, parseDatabaseOptions } from './database-options.js';
export { envOf, flagsOf, type Setting, type SettingsTable } from './setting.js';
export { type Config } from './settings.js';
export { formats } from './parse-value.js';
