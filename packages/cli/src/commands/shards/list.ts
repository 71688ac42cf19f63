import type { Move } from '@gateway/client';
import { GatewayCommand, jsonFlag } from '../../app/gateway-command.js';

const MIB = 2 ** 20;

export default class ShardsList extends GatewayCommand {
  static override description =
    'Asks every shard, all at once. EVENTS ended in the last 24 hours. The state is `ready`, `behind` if the shard lacks a migration, or `away` ' +
    'if its database does not answer or cannot be used; `draining` is added if it gets no new projects.';
  static override examples = ['gateway shards list', 'gateway shards list --json'];
  static override flags = jsonFlag;

  async run(): Promise<void> {
    const { flags } = await this.parse(ShardsList);
    const { content: states } = await this.api(flags, ({ shards }) => shards.list());
    this.logTable(states, flags, [
      ['NAME', ({ name }) => name],
      ['DATABASE', ({ host, port, database }) => `${host}:${port}/${database}`],
      ['SCHEMA', ({ schema, is_citus: isCitus }) => `${schema ?? '-'}${isCitus ? ' (Citus)' : ''}`],
      ['PROJECTS', ({ projects }) => String(projects)],
      ['EVENTS', ({ events_per_day: events }) => String(events ?? '-')],
      ['SIZE', ({ bytes }) => (bytes === null ? '-' : `${Math.ceil(bytes / MIB)} MiB`)],
      [
        'STATE',
        ({ state, is_draining: isDraining }) => `${state}${isDraining ? ', draining' : ''}`,
      ],
    ]);
    for (const { name, reason } of states)
      if (reason !== null) this.logToStderr(`${name}: ${reason}`);
    for (const move of states.flatMap(({ moves }) => moves)) this.logToStderr(moveLine(move));
  }
}

function moveLine({ project_id: id, from, to, phase, error, ...move }: Move): string {
  const { events_left: left, copied_to: at, seconds_left: seconds } = move;
  const parts = [
    phase === 'history' ? undefined : 'it takes no events until the move is done or called off',
    left === null ? undefined : `${left} events left`,
    at === null ? undefined : `those from before ${at}`,
    seconds === null ? undefined : `about ${Math.ceil(seconds)} s`,
    error === null ? undefined : `the last try failed: ${error}`,
  ].filter((it) => it !== undefined);
  return `moving the project ${id} from ${from} to ${to}${parts.length > 0 ? `: ${parts.join(', ')}` : ''}`;
}
