import { GatewayCommand, jsonFlag } from '../../app/gateway-command.js';

export default class MigrateStatus extends GatewayCommand {
  static override description =
    'Changes nothing, and works on a database that was never migrated. An `unknown` migration comes from a newer gateway.';
  static override examples = [
    '<%= config.bin %> migrate status',
    '<%= config.bin %> migrate status --json --db-host db.internal',
  ];
  static override flags = jsonFlag;

  async run(): Promise<void> {
    const { flags } = await this.parse(MigrateStatus);
    const { migrationStates } = await import('@gateway/store/postgres');
    const states = await this.withDatabase(flags, (database) => migrationStates(database), {
      migrated: false,
    });
    this.logTable(states, flags, [
      ['NAME', ({ name }) => name],
      ['STATE', ({ state }) => state],
      ['APPLIED AT', ({ applied_at: at }) => (at ? `${at.toISOString().slice(0, 19)}Z` : '')],
    ]);
    const pending = states.filter(({ state }) => state === 'pending').length;
    if (pending > 0)
      this.logToStderr(
        `${pending} pending: \`gateway migrate up\` applies ${pending === 1 ? 'it' : 'them'}.`,
      );
    if (states.some(({ state }) => state === 'unknown'))
      this.logToStderr(
        'The database is newer than this gateway: install the version that made it.',
      );
  }
}
