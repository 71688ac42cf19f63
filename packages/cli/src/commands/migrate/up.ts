import { GatewayCommand } from '../../app/gateway-command.js';

export default class MigrateUp extends GatewayCommand {
  static override description =
    'Run it before the first start and after an upgrade. Either all migrations are applied or none. A concurrent run ' +
    'waits. Agents and servers may keep running: the migration waits for their locks half a second at a time, for up to a minute.';
  static override examples = [
    '<%= config.bin %> migrate up',
    '<%= config.bin %> migrate up --db-host db.internal --db-database gateway',
  ];

  async run(): Promise<void> {
    const { flags } = await this.parse(MigrateUp);
    const { migrateUp } = await import('@gateway/store/postgres');
    const applied = await this.withDatabase(
      flags,
      (database) => migrateUp(database, { onWait: (why) => this.logToStderr(`waiting: ${why}`) }),
      { migrated: false },
    );
    for (const name of applied) this.log(`applied ${name}`);
    if (applied.length === 0) this.log('nothing to do: the database is up to date');
  }
}
