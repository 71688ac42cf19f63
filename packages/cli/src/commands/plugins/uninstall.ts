import { argument, command } from '../../app/gateway-command.js';

export default command({
  description:
    'Removes a package from the plugin folder (plugins.dir, GATEWAY_PLUGINS_DIR) with npm. Running servers and agents use it until they restart. ' +
    'Sources of its types are then no longer read; their messages stay with their brokers.',
  examples: ['gateway plugins uninstall gateway-source-nats', 'gateway plugins uninstall nats'],
  args: { name: argument('Name of the package, or of one of its plugins.') },
  async run({ args, log, options }) {
    const { uninstallPlugin } = await import('../../plugins/install.js');
    log(`removed ${await uninstallPlugin(args.name, options())}; restart servers and agents`);
  },
});
