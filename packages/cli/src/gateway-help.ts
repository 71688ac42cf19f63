import { CommandHelp, Help } from '@oclif/core/help';
import type { Config, HelpOptions } from '@oclif/core/interfaces';
import { textTable } from './text-table.js';

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

  /** Plain text: the templates and the wrapping of the library take a fifth of the time of `gateway` alone. */
  protected override showRootHelp(): Promise<void> {
    const { bin, pjson, userAgent } = this.config;
    const topics = this.sortedTopics.map(({ name, description }) => [name, description ?? ''] as const);
    const commands = this.sortedCommands.map(({ id, summary }) => [id, summary ?? ''] as const);
    const rows = [...topics, ...commands].filter(([name]) => !name.includes(':')).sort(([a], [b]) => (a < b ? -1 : 1));
    const list = textTable(rows, this.opts.maxWidth - 2).replace(/^/gm, '  ');
    this.log(`${pjson.oclif.description}\n\nVERSION\n  ${userAgent}\n\nUSAGE\n  $ ${bin} [COMMAND]\n\nCOMMANDS\n${list}\n`);
    this.log(`${bin} <command> --help tells more about a command.`);
    return Promise.resolve();
  }
}
