import { GatewayCommand } from '../../gateway-command.js';
import { installation } from '../../installation.js';
import { settingFlags } from '../../setting-flags.js';
import { summaries } from '../../summaries.js';

export default class ConfigSchema extends GatewayCommand {
  static override summary = summaries['config:schema'];
  static override description =
    'The settings of installed plugins are in it. An editor completes and checks a file that names it: { "$schema": "./gateway.schema.json" }.';
  static override examples = [
    '<%= config.bin %> config schema > gateway.schema.json',
    '<%= config.bin %> config schema --config ./production.json',
  ];
  static override baseFlags = settingFlags('config:schema');

  async run(): Promise<void> {
    await this.given();
    const { configSchema } = await import('@gateway/core/config');
    this.log(JSON.stringify(configSchema(installation().rows), null, 2));
  }
}
