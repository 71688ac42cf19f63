import { GatewayCommand } from '../app/gateway-command.js';

export default class Server extends GatewayCommand {
  static override description =
    'Runs the control plane: the management API. Run `migrate up` first. SIGTERM, SIGINT and SIGHUP stop it gracefully; a second signal ' +
    'exits at once. Aliases: serve, s.';
  static override examples = [
    'gateway server',
    'gateway server --port 8080 --config ./production.json',
  ];
  static override hiddenAliases = ['serve', 's'];

  async run(): Promise<void> {
    const { flags } = await this.parse(Server);
    const resolved = this.resolve(flags);
    const [{ runProcess }, { startServer }] = await Promise.all([
      import('../app/process.js'),
      import('@gateway/server'),
    ]);
    await runProcess(resolved, { name: 'gateway-server', start: startServer });
  }
}
