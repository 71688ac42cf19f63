import { GatewayCommand } from '../../app/gateway-command.js';
import { installation } from '../../app/installation.js';

export default class ConfigSchema extends GatewayCommand {
  static override description =
    'Includes the settings of installed plugins. Editors complete and check a file that names the schema: { "$schema": ' +
    '"./gateway.schema.json" }.';
  static override examples = [
    'gateway config schema > gateway.schema.json',
    'gateway config schema --config ./production.json',
  ];

  async run(): Promise<void> {
    await this.parse(ConfigSchema);
    const { configSchema } = await import('../../config/schema.js');
    this.log(JSON.stringify(configSchema(installation().rows), null, 2));
  }
}
