import type { SourceOfProject } from '@gateway/store/config';
import { Flags, GatewayCommand, jsonFlag } from '../../../app/gateway-command.js';
import { escapeLine } from '../../../output/escape-terminal.js';

const NAME_CHARS = 24;

export default class UtilsSourcesList extends GatewayCommand {
  static override description =
    'A source is paused by a person, or because its transform function repeatedly exceeds its time or memory limit. Agents do not read it until UNTIL, or until it is resumed; ' +
    'its messages stay with the broker. `gateway utils doctor` checks whether the broker is reachable.';
  static override examples = [
    '<%= config.bin %> utils sources list',
    '<%= config.bin %> utils sources list --paused --json',
  ];
  static override flags = {
    ...jsonFlag,
    paused: Flags.boolean({ summary: 'Only paused sources.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(UtilsSourcesList);
    const { listSourcesOfProjects } = await import('@gateway/store/config');
    const all = await this.withDatabase(flags, ({ pool }) => listSourcesOfProjects(pool));
    const shown = all.map(sourceRecord).filter(({ state }) => !flags.paused || state === 'paused');
    if (shown.length === 0)
      this.logToStderr(flags.paused ? 'No source is paused.' : 'There are no sources.');
    if (shown.length === 0 && !flags.json) return;
    this.logTable(shown, flags, [
      ['PROJECT', ({ project_name: name }) => escapeLine(name, NAME_CHARS)],
      ['SOURCE', ({ source_name: name }) => escapeLine(name, NAME_CHARS)],
      ['ID', ({ source_id: id }) => id],
      ['TYPE', ({ type }) => escapeLine(type)],
      ['STATE', ({ state }) => state],
      ['SINCE', ({ paused_at: since }) => since?.toISOString() ?? '-'],
      ['UNTIL', ({ resumes_at: until }) => until?.toISOString() ?? '-'],
      ['REASON', ({ pause_reason: reason }) => escapeLine(reason ?? '-')],
    ]);
  }
}

/**
 * Returns a source's fields as in the management API, without its connection and function. `unread`
 * marks a source that agents do not read: in an incoming project, they read only HTTP sources.
 */
function sourceRecord({ id, name, project_id, project_name, pub_sub, ...row }: SourceOfProject) {
  const { paused_at, resumes_at, pause_reason, paused_by, pauses } = row;
  const isRead = row.project_type === 'outgoing' || pub_sub.type === 'http';
  const state = row.is_disabled ? 'disabled' : !isRead ? 'unread' : paused_at ? 'paused' : 'read';
  const pause = { paused_at, resumes_at, pause_reason, paused_by, pauses };
  return {
    source_id: id,
    source_name: name,
    project_id,
    project_name,
    type: pub_sub.type,
    state,
    ...pause,
  };
}
