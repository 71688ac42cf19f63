import * as Flags from '@oclif/core/flags';
import type { SourceOfProject } from '@gateway/store/config';
import { answerTable, type Column } from '../../../output/table.js';
import { GatewayCommand, jsonFlag } from '../../../app/gateway-command.js';
import { escapeLine } from '../../../output/escape-terminal.js';
import { withDatabase } from '../../../app/database.js';

const NAME_CHARS = 24;

const columns: readonly Column<ReturnType<typeof sourceRecord>>[] = [
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
    const { config } = this.resolve(flags);
    const { listSourcesOfProjects } = await import('@gateway/store/config');
    const all = await withDatabase(config, ({ pool }) => listSourcesOfProjects(pool));
    const shown = all.map(sourceRecord).filter(({ state }) => !flags.paused || state === 'paused');
    if (flags.json || shown.length > 0) this.log(answerTable(shown, columns, flags));
    if (shown.length === 0) this.logToStderr(flags.paused ? 'No source is paused.' : 'There are no sources.');
  }
}

/**
 * A source with the fields of the management API, without its connection and function. `unread`: its project is of a type whose sources nobody reads;
 * `type`: the plugin that reads it.
 */
function sourceRecord({ id, name, project_id, project_name, pub_sub, ...row }: SourceOfProject) {
  const { paused_at, resumes_at, pause_reason, paused_by, pauses } = row;
  const isRead = row.project_type === 'outgoing';
  const state = row.is_disabled ? 'disabled' : !isRead ? 'unread' : paused_at ? 'paused' : 'read';
  const pause = { paused_at, resumes_at, pause_reason, paused_by, pauses };
  return { source_id: id, source_name: name, project_id, project_name, type: pub_sub.type, state, ...pause };
}
