import * as Args from '@oclif/core/args';
import { GatewayCommand } from '../../app/gateway-command.js';
import { installation } from '../../app/installation.js';

export default class PluginsUninstall extends GatewayCommand {
  static override description =
    'Removes a package from the folder of plugins (plugins.dir). Its settings are no settings any more: take them out of the configuration file.';
  static override examples = ['<%= config.bin %> plugins uninstall gateway-source-nats', '<%= config.bin %> plugins uninstall nats'];
  static override args = {
    plugin: Args.string({ required: true, ignoreStdin: true, description: 'Name of the package, or of a plugin in it.' }),
  };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(PluginsUninstall);
    const [{ readConfig }, { uninstallPlugin }] = await Promise.all([import('@gateway/core/config'), import('../../plugins/uninstall.js')]);
    const { config } = readConfig(this.configOptions(flags));
    this.log(`removed ${await uninstallPlugin(args['plugin'], { discovery: installation(), dir: config.plugins.dir })}`);
  }
}
