import { Flags, GatewayCommand, argument } from '../../app/gateway-command.js';

export default class ShardsDrain extends GatewayCommand {
  static override description =
    'Projects that are on the shard stay there and keep working. At least one shard must take new projects.';
  static override examples = [
    'gateway shards drain default',
    'gateway shards drain default --undo',
  ];
  static override args = { name: argument('Name of the shard.') };
  static override flags = {
    undo: Flags.boolean({ summary: 'Give the shard new projects again.' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ShardsDrain);
    const { name } = args;
    await this.api(flags, ({ shards }) => shards.update(name, { is_draining: !flags.undo }));
    this.log(`the shard ${name} gets ${flags.undo ? 'new projects again' : 'no new projects'}`);
  }
}
