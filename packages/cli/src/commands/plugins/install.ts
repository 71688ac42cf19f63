import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { GatewayCommand } from '../../app/gateway-command.js';
import { installation, root } from '../../app/installation.js';

export default class PluginsInstall extends GatewayCommand {
  static override description =
    'Installs a package with npm into the folder of plugins (plugins.dir, GATEWAY_PLUGINS_DIR) and reads its manifest. None of its code is run: npm runs no install ' +
    'scripts unless --allow-scripts says so. With a package that could never become active the folder stays as it was.';
  static override examples = [
    '<%= config.bin %> plugins install gateway-source-nats',
    '<%= config.bin %> plugins install gateway-source-nats@^2.1.0',
    '<%= config.bin %> plugins install ./gateway-source-nats-2.1.0.tgz',
  ];
  static override flags = {
    'allow-scripts': Flags.boolean({ summary: 'Let npm run the install scripts of the package and of what it depends on.' }),
  };
  static override args = {
    package: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'What npm installs: a name with or without a version, a folder, a tarball.',
    }),
  };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(PluginsInstall);
    const settings = this.configOptions(flags);
    const [{ installPlugin }, { installedLines }] = await Promise.all([
      import('../../plugins/install.js'),
      import('../../plugins/installed-lines.js'),
    ]);
    const allowScripts = flags['allow-scripts'] === true;
    const installed = await installPlugin(args['package'], { before: installation(), root: root(), settings, allowScripts });
    for (const line of installedLines('installed', installed)) this.log(line);
  }
}
