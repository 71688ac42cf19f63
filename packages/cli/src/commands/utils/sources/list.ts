import type { GatewayClient, Project } from '@gateway/client';
import {
  command,
  inEach,
  jsonFlag,
  projectFlag,
  projectsOf,
  READS,
  switchFlag,
} from '../../../app/gateway-command.js';

const NAME_CHARS = 24;

type ListedSource = Awaited<ReturnType<typeof sourcesOf>>[number];

export default command({
  description:
    'A source is paused by a person, or because its transform function repeatedly exceeds its time or memory limit. Agents do not read it until UNTIL, or until it is resumed; ' +
    'its messages stay at the broker. The state of a source is unknown while no agent reports it. `gateway utils doctor` checks whether the broker is reachable.',
  examples: ['gateway utils sources list', 'gateway utils sources list --paused --json'],
  flags: {
    ...jsonFlag,
    paused: switchFlag('Only paused sources.'),
    ...projectFlag,
  },
  async run({ flags, api, note, table }) {
    const all: ListedSource[] = [];
    await api(async (them) => {
      const read = async (of: GatewayClient, project: Project) =>
        void all.push(...(await sourcesOf(of, project)));
      await inEach(them, await projectsOf(them, flags), read, READS);
    });
    const nameOf = (it: ListedSource) => `${it.project_name} ${it.source_name} ${it.source_id}`;
    const shown = all
      .filter(({ state }) => !flags.paused || state === 'paused')
      .sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
    if (shown.length === 0) {
      note(flags.paused ? 'No source is paused.' : 'There are no sources.');
      if (!flags.json) return;
    }
    table(shown, [
      ['PROJECT', 'project_name', NAME_CHARS],
      ['SOURCE', 'source_name', NAME_CHARS],
      ['ID', 'source_id'],
      ['TYPE', 'type'],
      ['STATE', 'state'],
      ['SINCE', 'since'],
      ['UNTIL', 'resumes_at'],
      ['REASON', 'reason'],
    ]);
  },
});

async function sourcesOf({ sources }: GatewayClient, project: Project) {
  const states = new Map((await sources.listStates()).content.map((it) => [it.uid, it]));
  const found = [];
  for await (const source of sources.list({ perPage: 200 })) {
    const { state = 'unknown', reason = null, since = null } = states.get(source.uid) ?? {};
    const { paused_at, resumes_at, pause_reason, paused_by, pauses } = source;
    found.push({
      source_id: source.uid,
      source_name: source.name,
      project_id: project.uid,
      project_name: project.name,
      type: source.pub_sub?.type ?? source.type,
      state,
      reason,
      since,
      paused_at,
      resumes_at,
      pause_reason,
      paused_by,
      pauses,
    });
  }
  return found;
}
