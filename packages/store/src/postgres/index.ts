export { databaseTime } from './database-time.js';
export { type Database, openDatabase } from './database.js';
export { createMigration, migrateDown, migrateUp, migrationsDir, migrationStates, requireMigrated } from './migrate.js';
export { showPoolUse } from './pool-use.js';
export { probeDatabase } from './probe.js';
export { refusesContent } from './refused-content.js';
