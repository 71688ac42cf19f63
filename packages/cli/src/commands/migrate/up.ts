import { GatewayCommand } from '../../app/gateway-command.js';
import { withDatabase } from '../../app/database.js';

export default class MigrateUp extends GatewayCommand {
  static override description =
    'Run it before starting server and agent in a new environment or after an upgrade. All are applied or none. Two at once are safe: the second waits. Agents and servers may run meanwhile: it waits half a second at a time for their locks, for up to a minute.';
  static override examples = ['<%= config.bin %> migrate up', '<%= config.bin %> migrate up --db-host db.internal --db-database gateway'];

  async run(): Promise<void> {
    const { flags } = await this.parse(MigrateUp);
    const { config } = this.resolve(flags);
    const { migrateUp } = await import('@gateway/store/postgres');
    const applied = await withDatabase(
      config,
      (database) => migrateUp(database, { onWait: (why) => this.logToStderr(`waiting: ${why}`) }),
      { migrated: false },
    );
    for (const name of applied) this.log(`applied ${name}`);
    if (applied.length === 0) this.log('nothing to do, the database is up to date');
  }
}
