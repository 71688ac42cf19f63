import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { GatewayCommand } from '../../app/gateway-command.js';

export default class PluginsCreate extends GatewayCommand {
  static override description =
    'Writes a TypeScript package with a manifest, settings, an example that works, what the conformance suite needs, and a README that tells how to go on.';
  static override examples = [
    '<%= config.bin %> plugins create source nats',
    '<%= config.bin %> plugins create tracer zipkin --folder ./zipkin',
    '<%= config.bin %> plugins create metrics statsd --package @acme/gateway-metrics-statsd',
  ];
  static override flags = {
    folder: Flags.string({
      helpValue: '<path>',
      summary: 'Folder to write, which must not be there or be empty. [default: ./gateway-<kind>-<name>]',
    }),
    package: Flags.string({ helpValue: '<name>', summary: 'Name of the npm package. [default: gateway-<kind>-<name>]' }),
  };
  static override args = {
    kind: Args.string({ required: true, ignoreStdin: true, description: 'source, tracer or metrics.' }),
    name: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'Name that users select it by: lower-case letters, digits and dashes.',
    }),
  };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(PluginsCreate);
    const { createPlugin } = await import('../../plugins/create.js');
    const text = (name: string) => (typeof flags[name] === 'string' ? flags[name] : undefined);
    const { folder, files, next } = createPlugin({
      kind: args['kind'],
      name: args['name'],
      folder: text('folder'),
      packageName: text('package'),
    });
    this.log(`wrote ${files.length} files to ${folder}; next:\n${next.map((line) => `  ${line}`).join('\n')}`);
  }
}
