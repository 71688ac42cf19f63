import { GatewayCommand } from '../gateway-command.js';
import { settingFlags } from '../setting-flags.js';
import { summaries } from '../summaries.js';

export default class Agent extends GatewayCommand {
  static override summary = summaries.agent;
  static override description =
    'Reads the sources, makes events of their messages and delivers them. `migrate up` is run before. SIGTERM and SIGINT drain it: what is in ' +
    'flight is settled first; a second signal exits at once.';
  static override examples = ['<%= config.bin %> agent', '<%= config.bin %> agent --mode retry --consumers 100'];
  static override baseFlags = settingFlags('agent');

  async run(): Promise<void> {
    const { flags } = await this.given();
    const resolved = this.resolve(flags);
    const [{ runProcess }, { startAgent }] = await Promise.all([import('../process.js'), import('@gateway/agent')]);
    await runProcess(resolved, { name: 'gateway-agent', start: startAgent });
  }
}
