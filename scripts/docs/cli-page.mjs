// @ts-check
import { useInstallation } from '#cli/app/installation';
import { loadOclif } from '#cli/app/oclif';
import { groups } from '#cli/app/setting-flags';
import { code, escaped, MADE } from './markdown.mjs';

/** @typedef {Awaited<ReturnType<typeof loadOclif>>['commands'][number]} Command */
/** @typedef {Command['flags'][string]} Flag */

const INTRODUCTION = `\`gateway\` alone lists the commands; \`gateway help <command>\` or \`gateway <command> --help\` describes one. A mistyped command, flag or value
is an error that suggests what was likely meant.

Results go to standard output, everything else to standard error. The exit status is 0 for success, 1 for a failure, 2 for wrong usage, and 130 after
Ctrl-C. Colours are for terminals only, and never with \`NO_COLOR\`. Tables fit the width of the terminal; \`--json\` prints complete values, for programs.

A flag wins over its environment variable, which wins over the configuration file. \`--[no-]x\` is a pair of flags: \`--x\` and \`--no-x\`. Separate the
values of a list with commas, or repeat the flag.

\`gateway completion bash|zsh|powershell\` prints the script of oclif's autocomplete plugin. The scripts for bash and zsh are tested in these shells; for PowerShell
only the structure of the script is tested.`;

/**
 * Generates the page of all commands, including the flags of installed plugins.
 * @param {string} root folder of the installation
 */
export async function cliPage(root) {
  useInstallation({ root, file: undefined });
  const config = await loadOclif();
  const hidden = new Set(config.commands.flatMap(({ hiddenAliases }) => hiddenAliases));
  const commands = config.commands
    .filter(({ id }) => !hidden.has(id))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  const shared = Object.values(commands.find(({ id }) => id === 'config')?.flags ?? {});
  const byGroup = groups.map((group) => ({
    group,
    flags: shared.filter((flag) => flag.helpGroup === group),
  }));
  /** @param {string} flag */
  const having = (flag) =>
    commands
      .filter(({ flags }) => flags[flag])
      .map((command) => code(nameOf(command)))
      .join(', ');
  return [
    '# Command line',
    MADE,
    INTRODUCTION,
    `## Global flags\n\nEvery command takes these flags, before its name as after it; ${code('help')} ignores them. All but ${code('--config')}, which names the configuration file, set a setting:
[Configuration](configuration.md) has the variable, default and meaning of each. ${code('gateway dev')} ignores those of the database and the KV.`,
    byGroup
      .filter(({ flags }) => flags.length > 0)
      .map(({ group, flags }) => `- ${titleOf(group)}: ${namesOf(flags)}`)
      .join('\n'),
    `${code('--json')} prints JSON instead of a table or text: ${having('json')}.`,
    `## From another machine\n\nThese commands use the [management API](http.md): ${having('url')}.

With ${code('--url')} (${code('GATEWAY_URL')}) and ${code('--key')} (${code('GATEWAY_KEY')}) they use that of a server. Without, they answer their own requests as an operator with all
rights, on the database of the settings, and no server needs to run. A personal key reaches the projects of its user, a key of a project its project. A key with
scopes needs ${code('projects:read')} and those of the [routes](http.md#routes) that a command uses; an error names the scope that is missing.`,
    ...commands.map(section),
  ]
    .join('\n\n')
    .concat('\n');
}

/** @param {Command} command */
function section(command) {
  const { args, flags, summary = '', description = '', hiddenAliases, examples } = command;
  const own = Object.values(flags).filter(
    ({ helpGroup, hidden }) => !hidden && !groups.includes(helpGroup ?? ''),
  );
  const settings = own.filter(isSetting);
  const words = Object.values(args).map(({ name, required, multiple }) => {
    const shown = `${name.toUpperCase()}${multiple || command.strict === false ? '...' : ''}`;
    return required ? shown : `[${shown}]`;
  });
  const list = [
    ...(words.length > 0
      ? [`- Usage: ${code(['gateway', nameOf(command), ...words].join(' '))}`]
      : []),
    ...Object.values(args).map(
      ({ name, description: of = '' }) => `- ${code(name.toUpperCase())}: ${escaped(of)}`,
    ),
    ...own
      .filter((flag) => !isSetting(flag) && flag.name !== 'json')
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(flagLine),
    ...(settings.length > 0 ? [`- [Settings](configuration.md): ${namesOf(settings)}`] : []),
    `- Examples: ${examplesOf(examples).join('; ')}`,
  ];
  return [
    `## gateway ${nameOf(command)}`,
    [
      `${summary} ${description.replace(/ Aliases: .*\.$/, '')}`.trim(),
      ...(hiddenAliases.length > 0 ? [`Aliases: ${hiddenAliases.map(code).join(', ')}.`] : []),
    ].join(' '),
    list.join('\n'),
  ].join('\n\n');
}

/** @param {Command['examples']} examples */
function examplesOf(examples) {
  const list = typeof examples === 'string' ? [examples] : (examples ?? []);
  const lines = list.flatMap((it) =>
    typeof it === 'string'
      ? it.split('\n')
      : [...(it.description ? [it.description] : []), it.command],
  );
  // A line of prose introduces the next command.
  return lines.reduce((/** @type {string[]} */ shown, line) => {
    const said = shown.at(-1)?.endsWith(':') ? `${shown.pop()} ` : '';
    return [...shown, said + (/\bgateway /.test(line) ? code(line) : `${line.replace(/:$/, '')}:`)];
  }, []);
}

/** @param {Flag} flag */
function flagLine(flag) {
  const [, meaning = flag.summary ?? '', standard] =
    /^(.*?) \[default: (.*?)\]$/.exec(flag.summary ?? '') ?? [];
  const value = valueOf(flag);
  return `- ${nameAs(flag)}${value && ` ${value}`}: ${escaped(meaning)}${standard ? ` Default: ${code(standard)}.` : ''}`;
}

/** @param {Flag} flag */
function nameAs(flag) {
  return code(`--${flag.type === 'boolean' && flag.allowNo ? '[no-]' : ''}${flag.name}`);
}

/** @param {readonly Flag[]} flags */
function namesOf(flags) {
  return [...flags]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(nameAs)
    .join(', ');
}

/** @param {Flag} flag */
function valueOf(flag) {
  if (flag.type === 'boolean') return '';
  const shown = typeof flag.helpValue === 'string' ? flag.helpValue : '<value>';
  const values = shown.startsWith('<')
    ? shown.replace(/^<(.*)>$/, '$1')
    : shown.split('|').map(code).join(', ');
  return `(${values}${flag.multiple ? ', several' : ''})`;
}

/**
 * The summary of a setting's flag names its variable:
 * `Port of the database. [default: 5432, env: GATEWAY_DB_PORT]`.
 * @param {Flag} flag
 */
function isSetting({ summary = '' }) {
  return /\benv: \w+\]$/.test(summary);
}

/** @param {string} group */
function titleOf(group) {
  return group.length > 2 ? group.charAt(0) + group.slice(1).toLowerCase() : group;
}

/** @param {Command} command */
function nameOf({ id }) {
  return id.replaceAll(':', ' ');
}
