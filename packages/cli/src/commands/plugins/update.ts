import { Flags, GatewayCommand, optionalArgument } from '../../app/gateway-command.js';
import { installation, root } from '../../app/installation.js';

export default class PluginsUpdate extends GatewayCommand {
  static override description =
    'Updates packages in the plugin folder (plugins.dir, GATEWAY_PLUGINS_DIR) with npm, to the newest version in the range with which each was installed. ' +
    'A package is restored if its new version can never become active. For a version outside of the range, install it again.';
  static override examples = [
    'gateway plugins update',
    'gateway plugins update gateway-source-nats',
  ];
  static override flags = {
    'allow-scripts': Flags.boolean({
      summary: 'Let npm run the install scripts of packages and their dependencies.',
    }),
  };
  static override args = {
    name: optionalArgument('Name of a package, or of one of its plugins. [default: all packages]'),
  };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(PluginsUpdate);
    const { statesOf, updatePlugins } = await import('../../plugins/install.js');
    const options = { before: installation(), root: root(), settings: this.configOptions(flags) };
    const updated = await updatePlugins(args.name, {
      ...options,
      allowScripts: flags['allow-scripts'],
    });
    for (const line of statesOf(updated)) this.log(`updated ${line}`);
    this.log(updated.length > 0 ? 'restart servers and agents' : 'nothing to update');
  }
}
