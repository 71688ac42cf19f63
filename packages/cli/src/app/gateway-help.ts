import type { Command } from '@oclif/core/command';
import { CommandHelp, Help } from '@oclif/core/help';
import type { Config, HelpOptions } from '@oclif/core/interfaces';
import { namedCommand, rootHelp } from './command-index.js';
import { requireCommand } from './failure.js';
import { firstSentence, groups, settingFlags } from './setting-flags.js';

type Flags = Command.Flag.Any[];

/**
 * The help fits a screen: one line per setting, and the global flags as names. `gateway help flags`
 * explains both.
 */
class GatewayCommandHelp extends CommandHelp {
  /** One line ending with `[FLAGS]`. The library would list every flag again. */
  protected override defaultUsage(): string {
    const hasFlags = Object.values(this.command.flags).some(({ hidden }) => !hidden);
    return `${super.defaultUsage()}${hasFlags ? ' [FLAGS]' : ''}`;
  }

  /** The library indents the text below a name two columns too far. */
  override renderList(...[rows, options]: Parameters<CommandHelp['renderList']>): string {
    return super.renderList(rows, { ...options, indentation: options.indentation + 2 });
  }

  protected override sections(): ReturnType<CommandHelp['sections']> {
    const others = super.sections().filter(({ header }) => header !== 'FLAGS');
    return [
      ...others,
      {
        header: 'FLAGS',
        generate: ({ flags }, header) => {
          const { mainFlags, flagGroups } = this.groupFlags(flags);
          return [
            { header, body: this.flags(mainFlags.map(firstSentence)) },
            { header: 'GLOBAL FLAGS', body: this.names(flagGroups) },
          ].filter(({ body }) => body);
        },
      },
    ];
  }

  protected override examples(...[examples]: Parameters<CommandHelp['examples']>) {
    return super.examples(examples)?.replaceAll('\n\n', '\n');
  }

  private names(flagGroups: Record<string, Flags>): string {
    const named = groups.filter((group) => flagGroups[group]);
    if (named.length === 0) return '';
    const indent = Math.max(...named.map(({ length }) => length)) + 2;
    const rows = named.map((group) => {
      const names = shortened(flagGroups[group]!.map(({ name }) => name)).join(' ');
      return (
        group.toLowerCase().padEnd(indent) +
        this.wrap(names, indent + 2).replaceAll('\n', `\n${' '.repeat(indent)}`)
      );
    });
    return ['`gateway help flags` explains each.', ...rows].join('\n');
  }

  /** `gateway help flags`: each group of flags, with every detail. */
  explained(byGroup: Readonly<Record<string, Flags>>): string {
    return Object.entries(byGroup)
      .map(([group, flags]) => this.section(`${group} FLAGS`, this.flags(flags) ?? ''))
      .join('\n\n');
  }
}

/** Three or more names with a prefix that others lack become one: `--otel-*`. */
function shortened(names: readonly string[]): string[] {
  const count = (prefix: string) => names.filter((name) => name.startsWith(prefix)).length;
  const flags = names.map((name) => {
    const [first, second] = name.split('-');
    const prefix = [`${first}-`, `${first}-${second}-`].find(
      (it) => count(it) > 2 && count(it) < names.length,
    );
    return prefix === undefined ? `--${name}` : `--${prefix}*`;
  });
  return [...new Set(flags)];
}

/** oclif loads this class from the path in `helpClass`. */
export default class GatewayHelp extends Help {
  protected override CommandHelpClass = GatewayCommandHelp;

  constructor(config: Config, options: Partial<HelpOptions> = {}) {
    super(config, { docopts: false, hideCommandSummaryInDescription: true, ...options });
  }

  /**
   * Unlike the library, supports a command called `help`, and suggests a command for a mistyped
   * one.
   */
  override async showHelp(argv: string[]): Promise<void> {
    const asked = argv.filter((it) => it !== '--help' && it !== '-h');
    const end = asked.findIndex((it) => it.startsWith('-'));
    const words = end === -1 ? asked : asked.slice(0, end);
    if (words.length === 0) return this.log(rootHelp(this.opts.maxWidth).trimEnd());
    if (/^(help )?flags$/.test(words.join(' '))) return this.log(this.flagsHelp());
    const named = namedCommand(words[0] === 'help' && words.length > 1 ? words.slice(1) : words);
    requireCommand(named);
    const command = this.config.findCommand(named.id);
    return command
      ? this.showCommandHelp(command)
      : this.showTopicHelp(this.config.findTopic(named.id)!);
  }

  private flagsHelp(): string {
    const byGroup: Record<string, Flags> = {};
    // Flags of some commands, and global ones: `retry` has the group of those that use the API.
    for (const command of ['help', 'server', 'agent', 'retry'])
      for (const [name, flag] of Object.entries(settingFlags(command))) {
        const group = flag.helpGroup ?? command.toUpperCase();
        if (command === 'help' || !byGroup[group]?.some((it) => it.name === name))
          (byGroup[group] ??= []).push({ ...flag, name });
      }
    for (const flags of Object.values(byGroup)) flags.sort((a, b) => (a.name < b.name ? -1 : 1));
    const sorted = [...groups, 'SERVER', 'AGENT'].flatMap((group) =>
      byGroup[group] ? [[group, byGroup[group]] as const] : [],
    );
    const command = this.config.findCommand('help')!;
    return new GatewayCommandHelp(command, this.config, this.opts).explained(
      Object.fromEntries(sorted),
    );
  }
}
