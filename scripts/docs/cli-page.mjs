// @ts-check
import { useInstallation } from '#cli/installation';
import { loadOclif } from '#cli/oclif';
import { groups } from '#cli/setting-flags';
import { code, MADE, table } from './markdown.mjs';

/** @typedef {Awaited<ReturnType<typeof loadOclif>>['commands'][number]} Command */
/** @typedef {Command['flags'][string]} Flag */

const INTRODUCTION = `\`gateway\` alone lists the commands, \`gateway <command> --help\` tells of one, \`gateway help <command>\` too. A mistyped command, flag or value
is told with what was likely meant.

An answer goes to standard output and everything else to standard error. The exit status is 0, or 1 when something failed, or 2 for a wrong use; Ctrl-C
ends a command with 130. Colours are for terminals, and not with \`NO_COLOR\`. Tables fit the terminal; \`--json\` prints them whole, for programs.

Flags that set a setting win over its environment variable, and that over the configuration file: [Configuration](configuration.md) has all of
them. A flag without a value has a twin that says the opposite where a \`no-\` is shown. A list is written with commas, or the flag repeated.

\`gateway completion bash|zsh|fish|powershell\` prints a script that completes commands, flags and known values. Those for bash, zsh and fish are
tested in the shells; that for PowerShell is checked by its structure alone.`;

/**
 * The page of all commands, with the flags of the installed plugins.
 * @param {string} root folder of the installation
 */
export async function cliPage(root) {
  useInstallation({ root, file: undefined });
  const config = await loadOclif();
  const hidden = new Set(config.commands.flatMap(({ hiddenAliases }) => hiddenAliases));
  const commands = config.commands.filter(({ id }) => !hidden.has(id)).sort((a, b) => (a.id < b.id ? -1 : 1));
  const shared = commands.find(({ id }) => id === 'config');
  return [
    '# Command line',
    MADE,
    INTRODUCTION,
    `## Commands\n\n${table(
      ['Command', 'Purpose'],
      commands.map((command) => [`[${code(nameOf(command))}](#${anchorOf(command)})`, command.summary ?? '']),
    )}`,
    ...commands.map(section),
    `## Global flags\n\nEvery command but ${code('help')} takes them. ${code('gateway dev')} decides those of Postgres and KV itself.`,
    ...groups.flatMap((group) => {
      const flags = Object.values(shared?.flags ?? {}).filter((flag) => flag.helpGroup === group);
      return flags.length === 0
        ? []
        : [`### ${group.length > 2 ? group.charAt(0) + group.slice(1).toLowerCase() : group} flags\n\n${flagsTable(flags)}`];
    }),
  ]
    .join('\n\n')
    .concat('\n');
}

/** @param {Command} command */
function section(command) {
  const { args, flags, summary = '', description = '', hiddenAliases, examples } = command;
  const own = Object.values(flags).filter(({ helpGroup, hidden }) => !hidden && !groups.includes(helpGroup ?? ''));
  const words = Object.values(args).map(({ name, required, multiple }) => {
    const shown = `${name.toUpperCase()}${multiple || command.strict === false ? '...' : ''}`;
    return required ? shown : `[${shown}]`;
  });
  const parts = [
    `## gateway ${nameOf(command)}`,
    summary,
    fenced([['gateway', nameOf(command), ...words, ...(Object.keys(flags).length > 0 ? ['[FLAGS]'] : [])].join(' ')]),
    ...(hiddenAliases.length > 0 ? [`Aliases: ${hiddenAliases.map(code).join(', ')}.`] : []),
    filled(description.replace(/ Aliases: .*\.$/, '')),
    ...(words.length > 0
      ? [
          table(
            ['Argument', 'Meaning'],
            Object.values(args).map(({ name, description: of = '' }) => [code(name.toUpperCase()), of]),
          ),
        ]
      : []),
    ...(own.length > 0 ? [flagsTable(own)] : []),
    ...examplesOf(examples),
  ];
  return parts.filter(Boolean).join('\n\n');
}

/** @param {Command['examples']} examples */
function examplesOf(examples) {
  const list = typeof examples === 'string' ? [examples] : (examples ?? []);
  const lines = list.flatMap((it) => (typeof it === 'string' ? it.split('\n') : [...(it.description ? [it.description] : []), it.command]));
  return lines.length === 0 ? [] : [fenced(lines.map((line) => (isTyped(line) ? filled(line) : `# ${filled(line).replace(/:$/, '')}`)))];
}

/** @param {string} line */
function isTyped(line) {
  return line.includes('<%= config.bin %>');
}

/** @param {readonly Flag[]} flags */
function flagsTable(flags) {
  const sorted = [...flags].sort((a, b) => (a.name < b.name ? -1 : 1));
  return table(
    ['Flag', 'Value', 'Default', 'Variable', 'Meaning'],
    sorted.map((flag) => {
      const { meaning, standard, variable } = summaryOf(flag);
      return [code(`--${flag.type === 'boolean' && flag.allowNo ? '[no-]' : ''}${flag.name}`), valueOf(flag), standard, variable, meaning];
    }),
  );
}

/** @param {Flag} flag */
function valueOf(flag) {
  if (flag.type === 'boolean') return '';
  const shown = typeof flag.helpValue === 'string' ? flag.helpValue : '<value>';
  const values = shown.startsWith('<') ? shown.replace(/^<(.*)>$/, '$1') : shown.split('|').map(code).join(', ');
  return flag.multiple ? `${values}, several` : values;
}

/**
 * The parts of `Port of the database. [default: 5432, env: GATEWAY_DB_PORT]`.
 * @param {Flag} flag
 */
function summaryOf({ summary = '' }) {
  const [, meaning = summary, standard, variable] = /^(.*?) \[(?:default: (.*?))?(?:, )?(?:env: (\w+))?\]$/.exec(summary) ?? [];
  return { meaning, standard: standard ? code(standard) : '', variable: variable ? code(variable) : '' };
}

/** @param {Command} command */
function nameOf({ id }) {
  return id.replaceAll(':', ' ');
}

/** @param {Command} command */
function anchorOf(command) {
  return `gateway-${nameOf(command).replaceAll(' ', '-')}`;
}

/** @param {string} text */
function filled(text) {
  return text.replaceAll('<%= config.bin %>', 'gateway');
}

/** @param {readonly string[]} lines */
function fenced(lines) {
  return ['```sh', ...lines, '```'].join('\n');
}
