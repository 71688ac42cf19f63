import { Flags, GatewayCommand, argument } from '../../app/gateway-command.js';
import { installation, root } from '../../app/installation.js';

export default class PluginsInstall extends GatewayCommand {
  static override description =
    'Installs a package with npm into the plugin folder (plugins.dir, GATEWAY_PLUGINS_DIR) and reads its manifest. If its ' +
    'gates allow it, the package is imported as a check. A folder is linked: each start of the gateway uses its current content. npm runs install scripts only with --allow-scripts. The package ' +
    'is removed again if it can never become active.';
  static override examples = [
    'gateway plugins install gateway-source-nats',
    'gateway plugins install gateway-source-nats@^2.1.0',
    'gateway plugins install ./gateway-source-nats-2.1.0.tgz',
    'gateway plugins install ./gateway-source-nats',
  ];
  static override flags = {
    'allow-scripts': Flags.boolean({
      summary: 'Let npm run the install scripts of the package and its dependencies.',
    }),
  };
  static override args = {
    package: argument(
      'Package to install: a name with or without a version, a folder, or a tarball.',
    ),
  };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(PluginsInstall);
    const { installPlugin, statesOf } = await import('../../plugins/install.js');
    const options = { before: installation(), root: root(), settings: this.configOptions(flags) };
    const installed = await installPlugin(args.package, {
      ...options,
      allowScripts: flags['allow-scripts'],
    });
    for (const line of statesOf(installed)) this.log(`installed ${line}`);
  }
}
