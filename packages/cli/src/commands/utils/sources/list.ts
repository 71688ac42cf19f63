import * as Flags from '@oclif/core/flags';
import { answerTable, type Column } from '../../../output/table.js';
import { GatewayCommand, jsonFlag } from '../../../app/gateway-command.js';
import { sourceRecord, type ShownSource } from '../../../sources/record.js';
import { escapeLine } from '../../../output/escape-terminal.js';
import { withDatabase } from '../../../app/database.js';

const NAME_CHARS = 24;

const columns: readonly Column<ShownSource>[] = [
  ['PROJECT', ({ project_name: name }) => escapeLine(name, NAME_CHARS)],
  ['SOURCE', ({ source_name: name }) => escapeLine(name, NAME_CHARS)],
  ['ID', ({ source_id: id }) => id],
  ['TYPE', ({ type }) => escapeLine(type)],
  ['STATE', ({ state }) => state],
  ['SINCE', ({ paused_at: since }) => since?.toISOString() ?? '-'],
  ['UNTIL', ({ resumes_at: until }) => until?.toISOString() ?? '-'],
  ['REASON', ({ pause_reason: reason }) => escapeLine(reason ?? '-')],
];

export default class UtilsSourcesList extends GatewayCommand {
  static override description =
    'A source whose transform function runs out of time or memory again and again is paused: agents do not read it until UNTIL, and its messages stay with their broker. ' +
    'Whether its broker can be reached is for `gateway utils doctor` to say.';
  static override examples = ['<%= config.bin %> utils sources list', '<%= config.bin %> utils sources list --paused --json'];
  static override flags = { ...jsonFlag, paused: Flags.boolean({ summary: 'Those that are paused, and no others.' }) };

  async run(): Promise<void> {
    const { flags } = await this.parse(UtilsSourcesList);
    const isPausedOnly = flags['paused'] === true;
    const { config } = this.resolve(flags);
    const { listSourcesOfProjects } = await import('@gateway/store/config');
    const all = await withDatabase(config, async (database) => {
      return listSourcesOfProjects(database.pool);
    });
    const shown = all.map(sourceRecord).filter(({ state }) => !isPausedOnly || state === 'paused');
    const json = flags['json'] === true;
    if (json || shown.length > 0) this.log(answerTable(shown, columns, { json }));
    if (shown.length === 0) this.logToStderr(isPausedOnly ? 'No source is paused.' : 'There are no sources.');
  }
}
