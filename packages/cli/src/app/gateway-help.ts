import type { Command } from '@oclif/core/command';
import { CommandHelp, Help } from '@oclif/core/help';
import type { Config, HelpOptions } from '@oclif/core/interfaces';
import { helpList } from './help-list.js';
import { rootHelp } from './root-help.js';
import { groups } from './setting-flags.js';
import { wrap } from '../output/text-table.js';

/** Most texts have nothing to fill in, and the template engine compiles each that it is given. */
function sparing(render: (text: string) => string): (text: string) => string {
  return (text) => (text.includes('<%') ? render(text) : text);
}

/** What is the command's own comes first, and the flags that every command takes last, by group. */
class GatewayCommandHelp extends CommandHelp {
  /** Lists the commands below this one; empty when there are none. */
  commandsBelow = '';

  constructor(command: Command.Loadable, config: Config, opts: HelpOptions) {
    super(command, config, opts);
    this.render = sparing(this.render);
  }

  override renderList(...[rows, { indentation }]: Parameters<CommandHelp['renderList']>): string {
    return helpList(rows, this.opts.maxWidth - indentation);
  }

  /** The library's way is right for texts with colours, and slow for the many that have none. */
  override wrap(body: string, spacing = this.indentSpacing): string {
    const text = this.render(body);
    return text.includes('\u001b') ? super.wrap(text, spacing) : wrap(text, this.opts.maxWidth - spacing).join('\n');
  }

  /** One line of usage instead of every flag twice. */
  protected override defaultUsage(): string {
    const hasFlags = Object.values(this.command.flags).some(({ hidden }) => !hidden);
    return `${super.defaultUsage()}${hasFlags ? ' [FLAGS]' : ''}`;
  }

  protected override sections(): ReturnType<CommandHelp['sections']> {
    const [usage, args, , ...rest] = super.sections();
    const own = { header: 'FLAGS', generate: sectionOf((flags) => this.flags(this.groupFlags(flags).mainFlags)) };
    const below = { header: 'COMMANDS', generate: () => this.commandsBelow };
    const shared = groups.map((group) => ({
      header: `${group} FLAGS`,
      generate: sectionOf((flags) => this.flags(this.groupFlags(flags).flagGroups[group] ?? [])),
    }));
    return [usage!, args!, own, ...rest, below, ...shared];
  }

  override section(...given: Parameters<CommandHelp['section']>): string {
    return given[0] === 'COMMANDS' ? this.commandsBelow : super.section(...given);
  }
}

function sectionOf(lines: (flags: Command.Flag.Any[]) => [string, string | undefined][] | undefined) {
  return ({ flags }: { flags: Command.Flag.Any[] }, header: string) => {
    const body = lines(flags);
    return body && [{ body, header }];
  };
}

export default class GatewayHelp extends Help {
  protected override CommandHelpClass = GatewayCommandHelp;

  constructor(config: Config, options: Partial<HelpOptions> = {}) {
    super(config, { docopts: false, hideCommandSummaryInDescription: true, ...options });
    this.render = sparing(this.render);
  }

  override renderList(...[rows, { indentation }]: Parameters<Help['renderList']>): string {
    return helpList(rows, this.opts.maxWidth - indentation);
  }

  /** The library skips the word `help`, and so would have no help of that command. */
  override async showHelp(argv: string[]): Promise<void> {
    const words = argv.filter((it) => !it.startsWith('-'));
    const help = this.config.findCommand('help');
    if (help && words.length > 0 && words.every((it) => it === 'help')) return this.showCommandHelp(help);
    return super.showHelp(argv);
  }

  /** The whole help of a command, as text. */
  helpOf(command: Command.Loadable): string {
    const below = this.sortedCommands.filter(({ id }) => id.startsWith(`${command.id}:`)).map((it) => ({ ...it }));
    const help = this.getCommandHelpClass({ ...command, id: command.id.replaceAll(':', ' ') }) as GatewayCommandHelp;
    help.commandsBelow = this.formatCommands(below);
    return `${this.summary(command) ?? ''}\n\n${help.generate()}\n`;
  }

  override showCommandHelp(command: Command.Loadable): Promise<void> {
    this.log(this.helpOf(command));
    return Promise.resolve();
  }

  protected override showRootHelp(): Promise<void> {
    this.log(rootHelp(this.opts.maxWidth).trimEnd());
    return Promise.resolve();
  }
}
