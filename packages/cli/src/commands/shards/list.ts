import { GatewayCommand, jsonFlag } from '../../app/gateway-command.js';

const MIB = 2 ** 20;

export default class ShardsList extends GatewayCommand {
  static override description =
    'Asks every shard, all at once. EVENTS ended in the last 24 hours. The state is `ready`, `behind` if the shard lacks a migration, or `away` ' +
    'if its database does not answer or cannot be used; `draining` is added if it gets no new projects.';
  static override examples = [
    '<%= config.bin %> shards list',
    '<%= config.bin %> shards list --json',
  ];
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
  }
}
