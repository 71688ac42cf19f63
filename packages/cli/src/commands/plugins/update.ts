import { command, optionalArgument, switchFlag } from '../../app/gateway-command.js';

export default command({
  description:
    'Updates packages in the plugin folder (plugins.dir, GATEWAY_PLUGINS_DIR) with npm, to the newest version in the range with which each was installed. ' +
    'A package is restored if its new version can never become active. For a version outside of the range, install it again.',
  examples: ['gateway plugins update', 'gateway plugins update gateway-source-nats'],
  flags: {
    'allow-scripts': switchFlag(
      'Let npm run the install scripts of packages and their dependencies.',
    ),
  },
  args: {
    name: optionalArgument('Name of a package, or of one of its plugins. [default: all packages]'),
  },
  async run({ args, flags, log, options }) {
    const { updatePlugins } = await import('../../plugins/install.js');
    const given = { settings: options(), allowScripts: flags['allow-scripts'] };
    const updated = await updatePlugins(args.name, given);
    for (const line of updated) log(`updated ${line}`);
    log(updated.length > 0 ? 'restart servers and agents' : 'nothing to update');
  },
});
