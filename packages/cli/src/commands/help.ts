import * as Args from '@oclif/core/args';
import { Command } from '@oclif/core/command';
import GatewayHelp from '../app/gateway-help.js';

export default class Help extends Command {
  static override baseFlags = {};
  static override description =
    'Same as --help after the command. A word that starts several commands lists them; `help flags` explains the flags that set settings.';
  static override examples = ['gateway help', 'gateway help migrate up', 'gateway help flags'];
  static override args = {
    command: Args.string({ ignoreStdin: true, description: 'Command to show help for.' }),
  };
  static override strict = false;

  async run(): Promise<void> {
    this.parsed = true;
    await new GatewayHelp(this.config).showHelp(this.argv);
  }
}
