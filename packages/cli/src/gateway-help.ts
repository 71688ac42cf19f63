import { CommandHelp, Help } from '@oclif/core/help';
import type { Config, HelpOptions } from '@oclif/core/interfaces';

/** One line of usage instead of every flag twice. */
class GatewayCommandHelp extends CommandHelp {
  protected override defaultUsage(): string {
    return `${super.defaultUsage()} [FLAGS]`;
  }
}

/** Help in which topics stand among the commands, because to a person `migrate` is a command. */
export default class GatewayHelp extends Help {
  protected override CommandHelpClass = GatewayCommandHelp;

  constructor(config: Config, options: Partial<HelpOptions> = {}) {
    super(config, { docopts: false, hideCommandSummaryInDescription: true, ...options });
  }

  protected override showRootHelp(): Promise<void> {
    const topics = this.sortedTopics
      .filter(({ name }) => !name.includes(':'))
      .map(({ name, description }) => ({ id: name, summary: description }));
    const commands = this.sortedCommands.filter(({ id }) => !id.includes(':')).map(({ id, summary }) => ({ id, summary }));
    const list = [...topics, ...commands]
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .map(({ id, summary }): [string, string] => [id, summary ?? '']);
    this.log(this.formatRoot());
    this.log('');
    this.log(this.section('COMMANDS', this.renderList(list, { indentation: 2, stripAnsi: this.opts.stripAnsi ?? false })));
    this.log('');
    this.log('gateway <command> --help tells more about a command.');
    return Promise.resolve();
  }
}
