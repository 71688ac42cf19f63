import * as Args from '@oclif/core/args';
import { Command } from '@oclif/core/command';

export default class Help extends Command {
  static override baseFlags = {};
  static override description = 'Same as --help after the command. A word that starts several commands lists them.';
  static override examples = ['<%= config.bin %> help', '<%= config.bin %> help migrate up'];
  static override args = { command: Args.string({ ignoreStdin: true, description: 'Command to show help for.' }) };
  static override strict = false;

  async run(): Promise<void> {
    this.parsed = true;
    const { commands } = await import('@oclif/plugin-help');
    await new commands.help(this.argv, this.config).run();
  }
}
