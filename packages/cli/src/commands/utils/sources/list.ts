import type { Source } from '@gateway/client';
import {
  Flags,
  GatewayCommand,
  inEach,
  jsonFlag,
  projectFlag,
  projectIdOf,
  projectsOf,
  READS,
} from '../../../app/gateway-command.js';
import { escapeLine } from '../../../output/escape-terminal.js';

const NAME_CHARS = 24;

export default class UtilsSourcesList extends GatewayCommand {
  static override description =
    'A source is paused by a person, or because its transform function repeatedly exceeds its time or memory limit. Agents do not read it until UNTIL, or until it is resumed; ' +
    'its messages stay at the broker. The state of a source is unknown while no agent reports it. `gateway utils doctor` checks whether the broker is reachable.';
  static override examples = [
    'gateway utils sources list',
    'gateway utils sources list --paused --json',
  ];
  static override flags = {
    ...jsonFlag,
    paused: Flags.boolean({ summary: 'Only paused sources.' }),
    ...projectFlag,
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(UtilsSourcesList);
    const all = await this.api(flags, async (api) => {
      const found: ListedSource[] = [];
      await inEach(
        api,
        await projectsOf(api, projectIdOf(flags)),
        async ({ sources }, project) => {
          const states = new Map((await sources.listStates()).content.map((it) => [it.uid, it]));
          for await (const source of sources.list({ perPage: 200 })) {
            const { state = 'unknown', reason = null, since = null } = states.get(source.uid) ?? {};
            found.push({
              source_id: source.uid,
              source_name: source.name,
              project_id: project.uid,
              project_name: project.name,
              type: source.pub_sub?.type ?? source.type,
              ...{ state, reason, since },
              paused_at: source.paused_at,
              resumes_at: source.resumes_at,
              pause_reason: source.pause_reason,
              paused_by: source.paused_by,
              pauses: source.pauses,
            });
          }
        },
        READS,
      );
      return found;
    });
    const nameOf = (it: ListedSource) => `${it.project_name} ${it.source_name} ${it.source_id}`;
    const shown = all
      .filter(({ state }) => !flags.paused || state === 'paused')
      .sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
    if (shown.length === 0)
      this.logToStderr(flags.paused ? 'No source is paused.' : 'There are no sources.');
    if (shown.length === 0 && !flags.json) return;
    this.logTable(shown, flags, [
      ['PROJECT', ({ project_name: name }) => escapeLine(name, NAME_CHARS)],
      ['SOURCE', ({ source_name: name }) => escapeLine(name, NAME_CHARS)],
      ['ID', ({ source_id: id }) => id],
      ['TYPE', ({ type }) => escapeLine(type)],
      ['STATE', ({ state }) => state],
      ['SINCE', ({ since }) => since ?? '-'],
      ['UNTIL', ({ resumes_at: until }) => until ?? '-'],
      ['REASON', ({ reason }) => escapeLine(reason ?? '-')],
    ]);
  }
}

interface ListedSource extends Pick<
  Source,
  'project_id' | 'paused_at' | 'resumes_at' | 'pause_reason' | 'paused_by' | 'pauses'
> {
  readonly source_id: string;
  readonly source_name: string;
  readonly project_name: string;
  readonly type: string;
  readonly state: string;
  readonly reason: string | null;
  readonly since: string | null;
}
