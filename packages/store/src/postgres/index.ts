export { type Database, openDatabase, exportPoolMetrics } from './database.js';
export {
  createMigration,
  migrateDown,
  migrateUp,
  migrationsDir,
  migrationStates,
  requireMigrated,
  requireReady,
} from './migrate.js';
export { requireSessions } from './pooler.js';
export {
  type DatabaseFacts,
  databaseTime,
  readDatabaseFacts,
  probeDatabase,
} from './server-facts.js';
export { rejectsContent } from './sqlstate.js';
