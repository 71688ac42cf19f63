import { GatewayCommand, argument, valueFlag } from '../../app/gateway-command.js';

export default class PluginsCreate extends GatewayCommand {
  static override description =
    'Writes a TypeScript package of a source with a manifest, settings, a working example, a rig for the conformance suite, and a README with the next steps.';
  static override examples = [
    'gateway plugins create source nats',
    'gateway plugins create source nats --folder ./nats --package @acme/gateway-source-nats',
  ];
  static override flags = {
    folder: valueFlag(
      '<path>',
      'Folder to write to; it must be empty or not exist. [default: ./gateway-<kind>-<name>]',
    ),
    package: valueFlag('<name>', 'Name of the npm package. [default: gateway-<kind>-<name>]'),
  };
  static override args = {
    kind: argument('source, the kind that has a template.'),
    name: argument('Name by which users select it: lower-case letters, digits and dashes.'),
  };

  async run(): Promise<void> {
    const { flags, args } = await this.parse(PluginsCreate);
    const { createPlugin } = await import('../../plugins/create.js');
    const { folder, files, api } = createPlugin(args.kind, args.name, flags.folder, flags.package);
    // Saved links: `npm install <library>` would otherwise look for the packages in a registry.
    const install = `npm install --save-dev ${api.map((path) => `"${path}"`).join(' ')}`;
    const next = [
      `cd ${folder}`,
      install,
      'npm run build',
      'gateway plugins test .',
      'gateway plugins install .',
    ];
    this.log(
      `wrote ${files} files to ${folder}; next:\n${next.map((line) => `  ${line}`).join('\n')}`,
    );
  }
}
