export { configSchema } from './config-schema.js';
export {
  type ConfigOptions,
  editorCommand,
  type FlagValues,
  pluginsDirOf,
  presentConfig,
  presentOrigins,
  readConfig,
  resolveConfig,
  type Resolved,
} from './config.js';
export { type DatabaseOptions, parseDatabaseOptions } from './database-options.js';
export { formatDuration, parseDuration } from './duration.js';
export { envOf, flagsOf, type Setting, type SettingsTable } from './setting.js';
export { type Config } from './settings.js';
