import * as Args from '@oclif/core/args';
import { GatewayCommand } from '../../gateway-command.js';
import { installation } from '../../installation.js';
import { settingFlags } from '../../setting-flags.js';
import { summaries } from '../../summaries.js';

export default class PluginsUninstall extends GatewayCommand {
  static override summary = summaries['plugins:uninstall'];
  static override description =
    'Removes a package from the folder of plugins (plugins.dir). Its settings are no settings any more: take them out of the configuration file.';
  static override examples = ['<%= config.bin %> plugins uninstall gateway-source-nats', '<%= config.bin %> plugins uninstall nats'];
  static override baseFlags = settingFlags('plugins:uninstall');
  static override args = {
    plugin: Args.string({ required: true, ignoreStdin: true, description: 'Name of the package, or of a plugin in it.' }),
  };

  async run(): Promise<void> {
    const { flags, args } = await this.given();
    const [{ readConfig }, { uninstallPlugin }] = await Promise.all([import('@gateway/core/config'), import('../../plugins/uninstall.js')]);
    const { config } = readConfig(this.configOptions(flags));
    this.log(`removed ${await uninstallPlugin(args['plugin']!, { discovery: installation(), dir: config.plugins.dir })}`);
  }
}
