import { answerTable } from '../../output/table.js';
import { GatewayCommand, jsonFlag } from '../../app/gateway-command.js';
import { withDatabase } from '../../app/database.js';

export default class MigrateStatus extends GatewayCommand {
  static override description =
    'Changes nothing, and works on a database that was never migrated. A migration that is `unknown` was made by a newer gateway.';
  static override examples = ['<%= config.bin %> migrate status', '<%= config.bin %> migrate status --json --db-host db.internal'];
  static override flags = jsonFlag;

  async run(): Promise<void> {
    const { flags } = await this.parse(MigrateStatus);
    const { config } = this.resolve(flags);
    const { migrationStates } = await import('@gateway/store/postgres');
    const states = await withDatabase(config, (database) => migrationStates(database), { migrated: false });
    this.log(
      answerTable(
        states,
        [
          ['NAME', ({ name }) => name],
          ['STATE', ({ state }) => state],
          ['APPLIED AT', ({ applied_at: at }) => (at ? `${at.toISOString().slice(0, 19)}Z` : '')],
        ],
        { json: flags['json'] === true },
      ),
    );
    const pending = states.filter(({ state }) => state === 'pending').length;
    if (pending > 0) this.logToStderr(`${pending} pending: \`gateway migrate up\` applies ${pending === 1 ? 'it' : 'them'}.`);
    if (states.some(({ state }) => state === 'unknown'))
      this.logToStderr('The database is newer than this gateway: install the version that made it.');
  }
}
