import type { Move } from '@gateway/client';
import { command, jsonFlag } from '../../app/gateway-command.js';

const MIB = 2 ** 20;

export default command({
  description:
    'Asks every shard, all at once. EVENTS ended in the last 24 hours. The state is `ready`, `behind` if the shard lacks a migration, or `away` ' +
    'if its database does not answer or cannot be used; `draining` is added if it gets no new projects.',
  examples: ['gateway shards list', 'gateway shards list --json'],
  flags: jsonFlag,
  async run({ api, note, table }) {
    const { content: states } = await api(({ shards }) => shards.list());
    table(states, [
      ['NAME', 'name'],
      ['DATABASE', ({ host, port, database }) => `${host}:${port}/${database}`],
      ['SCHEMA', ({ schema, is_citus: isCitus }) => `${schema ?? '-'}${isCitus ? ' (Citus)' : ''}`],
      ['PROJECTS', 'projects'],
      ['EVENTS', 'events_per_day'],
      ['SIZE', ({ bytes }) => (bytes === null ? null : `${Math.ceil(bytes / MIB)} MiB`)],
      ['STATE', ({ state, is_draining: drains }) => `${state}${drains ? ', draining' : ''}`],
    ]);
    for (const { name, reason } of states) if (reason !== null) note(`${name}: ${reason}`);
    for (const move of states.flatMap(({ moves }) => moves)) note(moveLine(move));
  },
});

function moveLine({ project_id: id, from, to, phase, error, ...move }: Move): string {
  const { events_left: left, copied_to: at, seconds_left: seconds } = move;
  const parts = [
    phase !== 'history' && 'it takes no events until the move is done or called off',
    left !== null && `${left} events left`,
    at !== null && `those from before ${at}`,
    seconds !== null && `about ${Math.ceil(seconds)} s`,
    error !== null && `the last try failed: ${error}`,
  ].filter((it) => it !== false);
  return `moving the project ${id} from ${from} to ${to}${parts.length > 0 ? `: ${parts.join(', ')}` : ''}`;
}
