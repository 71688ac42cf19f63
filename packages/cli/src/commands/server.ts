import { command } from '../app/gateway-command.js';

export default command({
  description:
    'Runs the control plane: the management API. Run `migrate up` first. SIGTERM, SIGINT and SIGHUP stop it gracefully; a second signal ' +
    'exits at once. Aliases: serve, s.',
  examples: ['gateway server', 'gateway server --port 8080 --config ./production.json'],
  hiddenAliases: ['serve', 's'],
  async run({ resolve }) {
    const resolved = resolve();
    const [{ runProcess }, { startServer }] = await Promise.all([
      import('../app/process.js'),
      import('@gateway/server'),
    ]);
    await runProcess(resolved, { name: 'gateway-server', start: startServer });
  },
});
