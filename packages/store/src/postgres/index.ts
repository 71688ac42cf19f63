export { type Database, openDatabase } from './database.js';
export { createMigration, migrateDown, migrateUp, migrationsDir, migrationStates, requireMigrated } from './migrate.js';
export { requireSessions } from './pooler.js';
export { exportPoolMetrics } from './pool-metrics.js';
export { type DatabaseFacts, databaseTime, readDatabaseFacts, probeDatabase } from './server-facts.js';
export { rejectsContent } from './sqlstate.js';
