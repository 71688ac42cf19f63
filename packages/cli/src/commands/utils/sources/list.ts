import type { Config } from '@gateway/core/config';
import type { SourceOfProject } from '@gateway/store/config';
import type { Readers } from '@gateway/store/deliveries';
import type { Absence, ReportedState, SourceCondition } from '@gateway/store/kv';
import { Flags, GatewayCommand, jsonFlag, withDatabase } from '../../../app/gateway-command.js';
import { escapeLine } from '../../../output/escape-terminal.js';

const NAME_CHARS = 24;

export default class UtilsSourcesList extends GatewayCommand {
  static override description =
    'A source is paused by a person, or because its transform function repeatedly exceeds its time or memory limit. Agents do not read it until UNTIL, or until it is resumed; ' +
    'its messages stay at the broker. The state of a source is unknown while no agent reports it. `gateway utils doctor` checks whether the broker is reachable.';
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
    const [{ listSourcesOfProjects }, { findReaders }, { sourceCondition }] = await Promise.all([
      import('@gateway/store/config'),
      import('@gateway/store/deliveries'),
      import('@gateway/store/kv'),
    ]);
    const { config } = this.resolve(flags);
    const [all, readers] = await withDatabase(config, ({ pool }) =>
      Promise.all([listSourcesOfProjects(pool), findReaders(pool)]),
    );
    const { states, absence } = await reportedStates(config, all, readers);
    const shown = all
      .map((source) =>
        sourceRecord(source, sourceCondition(source, states.get(source.id), absence)),
      )
      .filter(({ state }) => !flags.paused || state === 'paused');
    if (shown.length === 0)
      this.logToStderr(flags.paused ? 'No source is paused.' : 'There are no sources.');
    if (shown.length === 0 && !flags.json) return;
    this.logTable(shown, flags, [
      ['PROJECT', ({ project_name: name }) => escapeLine(name, NAME_CHARS)],
      ['SOURCE', ({ source_name: name }) => escapeLine(name, NAME_CHARS)],
      ['ID', ({ source_id: id }) => id],
      ['TYPE', ({ type }) => escapeLine(type)],
      ['STATE', ({ state }) => state],
      ['SINCE', ({ since }) => since?.toISOString() ?? '-'],
      ['UNTIL', ({ resumes_at: until }) => until?.toISOString() ?? '-'],
      ['REASON', ({ reason }) => escapeLine(reason ?? '-')],
    ]);
  }
}

/** Returns the states that agents have reported to KV, and why others are unknown. */
async function reportedStates(
  config: Config,
  sources: readonly SourceOfProject[],
  readers: Readers,
): Promise<{ states: ReadonlyMap<string, ReportedState>; absence: Absence }> {
  const [{ readSourceStates, TAKERS, whyUnreported }, { withKv }] = await Promise.all([
    import('@gateway/store/kv'),
    import('../../../app/stores.js'),
  ]);
  const states = new Map<string, ReportedState>();
  const absence = (isAway: boolean) => ({
    states,
    absence: whyUnreported(readers, { isAway, since: null }),
  });
  if (readers.ids.length === 0 || sources.length === 0) return absence(false);
  if (config.kv.type === 'in-memory')
    return {
      states,
      absence: { reason: 'kv.type is in-memory: only the agent knows the states.', since: null },
    };
  try {
    await withKv(config, async (kv) => {
      for (const projectId of new Set(sources.map(({ project_id }) => project_id))) {
        const sourceIds = sources.flatMap((it) => (it.project_id === projectId ? it.id : []));
        const agentIds = [TAKERS, ...readers.ids];
        const found = await readSourceStates(kv, { projectId, sourceIds, agentIds });
        for (const [id, state] of found) states.set(id, state);
      }
    });
    return absence(false);
  } catch {
    return absence(true);
  }
}

/**
 * Returns a source's fields as in the management API, without its connection and function. `unread`
 * marks a source that agents do not read: in an incoming project, they read only HTTP sources.
 */
function sourceRecord(
  { id, name, project_id, project_name, project_type, type, pub_sub, ...row }: SourceOfProject,
  condition: SourceCondition,
) {
  const { paused_at, resumes_at, pause_reason, paused_by, pauses } = row;
  const isRead = row.is_disabled || project_type === 'outgoing' || type === 'http';
  return {
    source_id: id,
    source_name: name,
    project_id,
    project_name,
    type: pub_sub.type,
    ...condition,
    ...(isRead ? {} : { state: 'unread' }),
    ...{ paused_at, resumes_at, pause_reason, paused_by, pauses },
  };
}
