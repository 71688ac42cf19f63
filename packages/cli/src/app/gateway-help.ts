import { CommandHelp, Help } from '@oclif/core/help';
import type { Config, HelpOptions } from '@oclif/core/interfaces';
import { namedCommand, rootHelp } from './command-index.js';
import { requireCommand } from './failure.js';

/** Moves the flags to the end of a command's help, because the list of setting flags is long. */
class GatewayCommandHelp extends CommandHelp {
  /** Returns one line of usage ending with `[FLAGS]`. The library would list every flag again. */
  protected override defaultUsage(): string {
    const hasFlags = Object.values(this.command.flags).some(({ hidden }) => !hidden);
    return `${super.defaultUsage()}${hasFlags ? ' [FLAGS]' : ''}`;
  }

  /** Corrects the text below a name, which the library indents two columns too far. */
  override renderList(...[rows, options]: Parameters<CommandHelp['renderList']>): string {
    return super.renderList(rows, { ...options, indentation: options.indentation + 2 });
  }

  protected override sections(): ReturnType<CommandHelp['sections']> {
    return super
      .sections()
      .sort((a, b) => Number(a.header === 'FLAGS') - Number(b.header === 'FLAGS'));
  }
}

/** Replaces oclif's help. oclif loads this class from the path in `helpClass`. */
export default class GatewayHelp extends Help {
  protected override CommandHelpClass = GatewayCommandHelp;

  constructor(config: Config, options: Partial<HelpOptions> = {}) {
    super(config, { docopts: false, hideCommandSummaryInDescription: true, ...options });
  }

  /**
   * Shows the help for the given words. Unlike the library, supports a command called `help`, and
   * suggests a command for a mistyped one.
   */
  override async showHelp(argv: string[]): Promise<void> {
    const asked = argv.filter((it) => it !== '--help' && it !== '-h');
    const end = asked.findIndex((it) => it.startsWith('-'));
    const words = end === -1 ? asked : asked.slice(0, end);
    if (words.length === 0) return this.log(rootHelp(this.opts.maxWidth).trimEnd());
    const named = namedCommand(words[0] === 'help' && words.length > 1 ? words.slice(1) : words);
    requireCommand(named);
    const command = this.config.findCommand(named.id);
    return command
      ? this.showCommandHelp(command)
      : this.showTopicHelp(this.config.findTopic(named.id)!);
  }
}
