import { GatewayCommand } from '../app/gateway-command.js';

export default class Agent extends GatewayCommand {
  static override description =
    'Reads the sources, makes events of their messages and delivers them. `migrate up` is run before. SIGTERM and SIGINT drain it: what is in ' +
    'flight is settled first; a second signal exits at once.';
  static override examples = ['<%= config.bin %> agent', '<%= config.bin %> agent --mode retry --consumers 100'];

  async run(): Promise<void> {
    const { flags } = await this.parse(Agent);
    const resolved = this.resolve(flags);
    const [{ runProcess }, { startAgent }] = await Promise.all([import('../app/process.js'), import('@gateway/agent')]);
    await runProcess(resolved, { name: 'gateway-agent', start: startAgent });
  }
}
