import { GatewayCommand, argument } from '../../app/gateway-command.js';
import { installation, root } from '../../app/installation.js';

export default class PluginsUninstall extends GatewayCommand {
  static override description =
    'Removes a package from the plugin folder (plugins.dir, GATEWAY_PLUGINS_DIR) with npm. Running servers and agents use it until they restart. ' +
    'Sources of its types are then no longer read; their messages stay with their brokers.';
  static override examples = [
    'gateway plugins uninstall gateway-source-nats',
    'gateway plugins uninstall nats',
  ];
  static override args = {
    name: argument('Name of the package, or of one of its plugins.'),
  };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(PluginsUninstall);
    const { uninstallPlugin } = await import('../../plugins/install.js');
    const options = { before: installation(), root: root(), settings: this.configOptions(flags) };
    const removed = await uninstallPlugin(args.name, { ...options, allowScripts: false });
    this.log(`removed ${removed}; restart servers and agents`);
  }
}
