import { argument, command, switchFlag } from '../../app/gateway-command.js';

export default command({
  description:
    'Installs a package with npm into the plugin folder (plugins.dir, GATEWAY_PLUGINS_DIR) and reads its manifest. If its ' +
    'gates allow it, the package is imported as a check. A folder is linked: each start of the gateway uses its current content. npm runs install scripts only with --allow-scripts. The package ' +
    'is removed again if it can never become active.',
  examples: [
    'gateway plugins install gateway-source-nats',
    'gateway plugins install gateway-source-nats@^2.1.0',
    'gateway plugins install ./gateway-source-nats-2.1.0.tgz',
    'gateway plugins install ./gateway-source-nats',
  ],
  flags: {
    'allow-scripts': switchFlag(
      'Let npm run the install scripts of the package and its dependencies.',
    ),
  },
  args: {
    package: argument(
      'Package to install: a name with or without a version, a folder, or a tarball.',
    ),
  },
  async run({ args, flags, log, options }) {
    const { installPlugin } = await import('../../plugins/install.js');
    const given = { settings: options(), allowScripts: flags['allow-scripts'] };
    for (const line of await installPlugin(args.package, given)) log(`installed ${line}`);
  },
});
