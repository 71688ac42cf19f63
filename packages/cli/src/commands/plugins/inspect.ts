import * as Args from '@oclif/core/args';
import { GatewayCommand, jsonFlag } from '../../app/gateway-command.js';
import { installation } from '../../app/installation.js';

export default class PluginsInspect extends GatewayCommand {
  static override description =
    'Prints the manifest of a plugin, the plugin API that it wants against that of this gateway, its settings with their values, and whether it would become active. ' +
    'No code of it is loaded.';
  static override examples = ['<%= config.bin %> plugins inspect otel', '<%= config.bin %> plugins inspect gateway-source-nats --json'];
  static override flags = jsonFlag;
  static override args = {
    plugin: Args.string({ required: true, ignoreStdin: true, description: 'Name of a plugin, or of its package.' }),
  };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(PluginsInspect);
    const resolved = this.resolve(flags);
    const { inspectPlugins, inspectionText } = await import('../../plugins/inspect.js');
    const inspections = inspectPlugins(args['plugin'], { discovery: installation(), resolved });
    this.log(flags['json'] === true ? JSON.stringify(inspections, null, 2) : inspections.map((it) => inspectionText(it)).join('\n\n'));
  }
}
