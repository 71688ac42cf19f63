import { argument, command, valueFlag } from '../../app/gateway-command.js';

export default command({
  description:
    'Writes a TypeScript package of a source with a manifest, settings, a working example, a rig for the conformance suite, and a README with the next steps.',
  examples: [
    'gateway plugins create source nats',
    'gateway plugins create source nats --folder ./nats --package @acme/gateway-source-nats',
  ],
  flags: {
    folder: valueFlag(
      '<path>',
      'Folder to write to; it must be empty or not exist. [default: ./gateway-<kind>-<name>]',
    ),
    package: valueFlag('<name>', 'Name of the npm package. [default: gateway-<kind>-<name>]'),
  },
  args: {
    kind: argument('source, the kind that has a template.'),
    name: argument('Name by which users select it: lower-case letters, digits and dashes.'),
  },
  async run({ args, flags, log }) {
    const { createPlugin } = await import('../../plugins/create.js');
    const { folder, files, api } = createPlugin(args.kind, args.name, flags.folder, flags.package);
    const next = [
      `cd ${folder}`,
      // Saved links: `npm install <library>` would otherwise look for the packages in a registry.
      `npm install --save-dev ${api.map((path) => `"${path}"`).join(' ')}`,
      'npm run build',
      'gateway plugins test .',
      'gateway plugins install .',
    ];
    log(`wrote ${files} files to ${folder}; next:\n${next.map((line) => `  ${line}`).join('\n')}`);
  },
});
