import * as Args from '@oclif/core/args';
import { GatewayCommand } from '../../app/gateway-command.js';
import { installation, root } from '../../app/installation.js';

export default class PluginsLink extends GatewayCommand {
  static override description =
    'Links a folder into the folder of plugins, so that each start of the gateway uses what stands in it then. The package brings its own dependencies: run npm install in it first.';
  static override examples = ['<%= config.bin %> plugins link .', '<%= config.bin %> plugins link ../gateway-source-nats'];
  static override args = { folder: Args.string({ required: true, ignoreStdin: true, description: 'Folder of the package.' }) };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(PluginsLink);
    const settings = this.configOptions(flags);
    const [{ installPlugin }, { installedLines }, { resolve }] = await Promise.all([
      import('../../plugins/install.js'),
      import('../../plugins/installed-lines.js'),
      import('node:path'),
    ]);
    const installed = await installPlugin(resolve(args['folder']), { before: installation(), root: root(), settings, link: true });
    for (const line of installedLines('linked', installed)) this.log(line);
  }
}
