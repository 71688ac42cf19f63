import * as Flags from '@oclif/core/flags';
import { GatewayCommand } from '../../app/gateway-command.js';
import { withDatabase } from '../../app/database.js';
import { wrongUse } from '../../app/flag-values.js';

export default class MigrateDown extends GatewayCommand {
  static override description =
    'Stop server and agents first: they refuse to start on a database that lacks a migration. What a migration added is dropped with what it holds; tables with events, projects or endpoints in them are not, unless --drop-data says so.';
  static override examples = ['<%= config.bin %> migrate down', '<%= config.bin %> migrate down --max 2'];
  static override flags = {
    max: Flags.string({ helpValue: '<integer>', summary: 'How many migrations to roll back at most. [default: 1]' }),
    'drop-data': Flags.boolean({ summary: 'Rolls back also what drops events, projects and endpoints. They are lost.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(MigrateDown);
    const max = typeof flags['max'] === 'string' ? flags['max'] : '1';
    if (!/^[1-9]\d{0,5}$/.test(max)) {
      throw wrongUse(`--max must be a positive integer, not "${max}"`, 'leave it away to roll back one migration');
    }
    const { config } = this.resolve(flags);
    const { migrateDown } = await import('@gateway/store/postgres');
    const undone = await withDatabase(
      config,
      (database) =>
        migrateDown(database, {
          max: Number(max),
          dropData: flags['drop-data'] === true,
          onWait: (why) => this.logToStderr(`waiting: ${why}`),
        }),
      { migrated: false },
    );
    for (const name of undone) this.log(`rolled back ${name}`);
    if (undone.length === 0) this.log('nothing to do, no migration is applied');
  }
}
