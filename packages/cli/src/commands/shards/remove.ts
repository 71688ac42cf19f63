import { GatewayCommand, argument } from '../../app/gateway-command.js';

export default class ShardsRemove extends GatewayCommand {
  static override description =
    'Refused while a project is on the shard, or has events there from before a move. The tables stay in its database: drop them yourself.';
  static override examples = ['gateway shards remove big'];
  static override args = { name: argument('Name of the shard.') };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ShardsRemove);
    const { name } = args;
    await this.api(flags, ({ shards }) => shards.delete(name));
    this.log(`removed the shard ${name}`);
  }
}
