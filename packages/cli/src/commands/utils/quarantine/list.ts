import * as Flags from '@oclif/core/flags';
import type { QuarantineEntry } from '@gateway/store/quarantine';
import { withDatabase } from '../../../app/database.js';
import { integerOf } from '../../../app/flag-values.js';
import { GatewayCommand, jsonFlag } from '../../../app/gateway-command.js';
import { escapeLine } from '../../../output/escape-terminal.js';
import { answerTable, type Column } from '../../../output/table.js';
import { entryRecord } from '../../../quarantine/message-text.js';
import { filterFlags, requireProject, selectionOf } from '../../../quarantine/selection.js';

const SHOWN = 50;
const NAME_CHARS = 24;
const REASON_CHARS = 120;

const columns: readonly Column<QuarantineEntry>[] = [
  ['ID', ({ id }) => id],
  ['PROJECT', ({ project_name: name }) => escapeLine(name, NAME_CHARS)],
  ['SOURCE', ({ source_name: name, source_id: id }) => escapeLine(name ?? id, NAME_CHARS)],
  ['TIME', ({ occurred_at: time }) => `${time.toISOString().slice(0, 19)}Z`],
  ['CODE', ({ code }) => escapeLine(code)],
  ['BYTES', ({ raw_bytes: bytes, edited_at: editedAt }) => `${bytes}${editedAt ? ' edited' : ''}`],
  ['STATUS', ({ status }) => status],
  ['REASON', ({ reason }) => escapeLine(reason, REASON_CHARS)],
];

export default class UtilsQuarantineList extends GatewayCommand {
  static override description =
    'Lists them newest first, of all projects when none is named. A message is quarantined when it can never become an event as it is: it is kept ' +
    'with its bytes and the reason, and acknowledged to its broker.';
  static override examples = [
    '<%= config.bin %> utils quarantine list',
    '<%= config.bin %> utils quarantine list --status quarantined --code not_json --time 2h',
    '<%= config.bin %> utils quarantine list --json --limit 1000',
  ];
  static override flags = {
    ...filterFlags,
    status: Flags.string({ helpValue: 'quarantined|replayed|discarded', summary: 'Messages with this status.' }),
    limit: Flags.string({ helpValue: '<integer>', summary: `How many at most. [default: ${SHOWN}]` }),
    ...jsonFlag,
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(UtilsQuarantineList);
    const selection = selectionOf(flags);
    const limit = integerOf('--limit', flags.limit, { max: 10_000, otherwise: SHOWN });
    const { config } = this.resolve(flags);
    const { listQuarantine } = await import('@gateway/store/quarantine');
    const found = await withDatabase(config, async (database) => {
      await requireProject(database, selection);
      return listQuarantine(database.pool, selection, { order: 'desc', limit: limit + 1 });
    });
    const entries = found.slice(0, limit);
    if (flags.json) this.log(JSON.stringify(entries.map(entryRecord), null, 2));
    else if (entries.length > 0) this.log(answerTable(entries, columns, { json: false }));
    else this.logToStderr('No message is in quarantine that fits.');
    if (found.length > limit)
      this.logToStderr(`There are more than these ${limit}: raise --limit, or narrow it with --time, --code or --source-id.`);
  }
}
