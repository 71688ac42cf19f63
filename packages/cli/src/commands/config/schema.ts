import { GatewayCommand } from '../../app/gateway-command.js';
import { installation } from '../../app/installation.js';

export default class ConfigSchema extends GatewayCommand {
  static override description =
    'The settings of installed plugins are in it. An editor completes and checks a file that names it: { "$schema": "./gateway.schema.json" }.';
  static override examples = [
    '<%= config.bin %> config schema > gateway.schema.json',
    '<%= config.bin %> config schema --config ./production.json',
  ];

  async run(): Promise<void> {
    await this.parse(ConfigSchema);
    const { configSchema } = await import('../../config/schema.js');
    this.log(JSON.stringify(configSchema(installation().rows), null, 2));
  }
}
