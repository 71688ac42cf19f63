import { Flags, GatewayCommand, argument } from '../../app/gateway-command.js';
import { installation, root } from '../../app/installation.js';

export default class PluginsInstall extends GatewayCommand {
  static override description =
    'Installs a package with npm into the plugin folder (plugins.dir, GATEWAY_PLUGINS_DIR) and reads its manifest. What its ' +
    'gates let become active is imported, to see that it can be. A folder is linked: each start of the gateway uses its current content. npm runs install scripts only with --allow-scripts. A package ' +
    'that could never become active is removed again.';
  static override examples = [
    '<%= config.bin %> plugins install gateway-source-nats',
    '<%= config.bin %> plugins install gateway-source-nats@^2.1.0',
    '<%= config.bin %> plugins install ./gateway-source-nats-2.1.0.tgz',
    '<%= config.bin %> plugins install ./gateway-source-nats',
  ];
  static override flags = {
    'allow-scripts': Flags.boolean({
      summary: 'Let npm run the install scripts of the package and its dependencies.',
    }),
  };
  static override args = {
    package: argument('What npm installs: a name with or without a version, a folder, a tarball.'),
  };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(PluginsInstall);
    const { installPlugin } = await import('../../plugins/install.js');
    const installed = await installPlugin(args.package, {
      before: installation(),
      root: root(),
      settings: this.configOptions(flags),
      allowScripts: flags['allow-scripts'],
    });
    for (const { plugin, inactive } of installed) {
      const { kind, name, version, package: from } = plugin;
      const ready = kind === 'source' ? `ready for sources of the type ${name}` : 'active';
      const state = inactive ? `inactive because ${inactive.message}; ${inactive.fix}` : ready;
      this.log(`installed the ${kind} plugin ${name} (${from} ${version}): ${state}`);
    }
  }
}
