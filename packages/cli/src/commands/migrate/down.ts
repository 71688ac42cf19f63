import { Flags, GatewayCommand, valueFlag, wrongUse } from '../../app/gateway-command.js';

export default class MigrateDown extends GatewayCommand {
  static override description =
    'Stop server and agents first: they refuse to start on a database that lacks a migration. Drops what the migration added, ' +
    'with its contents. Tables with rows that nothing recreates, such as events, accounts or the audit log, are dropped only with --drop-data.';
  static override examples = [
    '<%= config.bin %> migrate down',
    '<%= config.bin %> migrate down --max 2',
  ];
  static override flags = {
    max: valueFlag('<integer>', 'Maximum number of migrations to roll back. [default: 1]'),
    'drop-data': Flags.boolean({
      summary:
        'Also roll back migrations that drop tables with rows that nothing recreates. Their data is lost.',
    }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(MigrateDown);
    const max = typeof flags['max'] === 'string' ? flags['max'] : '1';
    if (!/^[1-9]\d{0,5}$/.test(max)) {
      throw wrongUse(
        `--max must be a positive integer, not "${max}"`,
        'omit it to roll back one migration',
      );
    }
    const { migrateDown } = await import('@gateway/store/postgres');
    const undone = await this.withDatabase(
      flags,
      (database) =>
        migrateDown(database, {
          max: Number(max),
          dropData: flags['drop-data'] === true,
          onWait: (why) => this.logToStderr(`waiting: ${why}`),
        }),
      { migrated: false },
    );
    for (const name of undone) this.log(`rolled back ${name}`);
    if (undone.length === 0) this.log('nothing to do: no migration is applied');
  }
}
