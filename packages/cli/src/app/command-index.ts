import { VERSION } from '@gateway/core/process';
import { textTable } from '../output/table.js';

export const description =
  'Webhook gateway: turns messages from queues and topics into signed, recorded deliveries.';

/** `gateway` lists commands without loading them. */
export const summaries = {
  agent: 'Start the data plane.',
  'archive:list': 'List the days in the archive.',
  'archive:replay': 'Send archived events again.',
  bootstrap: 'Create a new user account.',
  completion: 'Generate a shell autocompletion script.',
  config: 'Print the computed configuration.',
  'config:check': 'Check the configuration and list every problem.',
  'config:schema': 'Print the JSON Schema of the configuration file.',
  dev: 'Try the gateway on this machine: everything in one process, with a sample message.',
  'feature-flags': 'Print the list of feature flags.',
  help: 'Help about any command.',
  init: 'Set up a gateway: its configuration file, tables and first user.',
  'license:show': 'Print the licence in force.',
  'migrate:create': 'Generate a new migration file (development workflow).',
  'migrate:down': 'Roll back migrations, the newest first.',
  'migrate:status': 'List the migrations and whether each is applied.',
  'migrate:up': 'Apply all pending migrations.',
  openapi: 'Extract webhook schemas from OpenAPI specifications.',
  plugins: 'Print the table of plugins.',
  'plugins:create': 'Write the package of a new plugin.',
  'plugins:install': 'Install a plugin package.',
  'plugins:uninstall': 'Remove a plugin package.',
  'plugins:update': 'Update plugin packages.',
  'plugins:test': 'Run the conformance suite on a plugin package.',
  retry: 'Re-queue event deliveries with a status within a timeframe.',
  server: 'Start the HTTP server.',
  'shards:add': 'Add a shard: a database or a schema for the events of projects.',
  'shards:drain': 'Give a shard no new projects.',
  'shards:list': 'List the shards with their load and state.',
  'shards:move': 'Move a project to another shard while it runs.',
  'shards:remove': 'Remove a shard that no project uses.',
  'shards:set': 'Change the address or the password of a shard.',
  'utils:circuit-breakers': 'List the circuit breakers that are not closed, or close one.',
  'utils:doctor': 'Check everything that a gateway depends on.',
  'utils:explain': 'Explain how an event was routed and delivered.',
  'utils:health': 'Request the health of a server or an agent on this machine.',
  'utils:issues:list': 'List the failures of endpoints, grouped by kind of error.',
  'utils:issues:mute': 'Mute an issue.',
  'utils:issues:retry': 'Resend the failed and waiting deliveries of an issue.',
  'utils:ordered-keys': 'List the parked keys of an ordered endpoint, or decide about one.',
  'utils:quarantine:discard': 'Discard quarantined messages.',
  'utils:quarantine:edit': 'Edit a quarantined message.',
  'utils:quarantine:list': 'List messages that were not accepted.',
  'utils:quarantine:replay': 'Replay quarantined messages.',
  'utils:quarantine:show': 'Show a quarantined message and its content.',
  'utils:secrets:rotate': 'Rotate the secret of an endpoint, or the encryption key.',
  'utils:sources:list': 'List the sources of all projects and their state.',
  'utils:sources:resume': 'Resume a paused source.',
  'utils:sources:rewind': 'Move where a source is read from, back or ahead.',
  'utils:transform': 'Run a transform function on a sample.',
  'utils:usage': 'Print the daily usage of each organisation.',
  'utils:users:reset-password': 'Reset the password of a user.',
  version: 'Print the version.',
} as const;

export type CommandId = keyof typeof summaries;

/** These words have subcommands but are not commands themselves. */
export const topics = {
  archive: 'Events that retention has archived.',
  license: 'The licence.',
  migrate: 'Database migrations.',
  shards: 'Shards, which hold the events of projects.',
  utils: 'Utility commands.',
  'utils:issues': 'Failures of endpoints, grouped by kind of error.',
  'utils:quarantine': 'Messages that were not accepted.',
  'utils:secrets': 'Secrets of endpoints and the encryption key.',
  'utils:sources': 'Sources and their pauses.',
  'utils:users': 'Users.',
} as const;

/** Each command repeats its own as `hiddenAliases`. */
export const aliases: Readonly<Record<string, CommandId>> = { serve: 'server', s: 'server' };

const ids = Object.keys(summaries) as CommandId[];

export interface NamedCommand {
  /** The longest matching command or topic, such as `utils:quarantine`, or empty. */
  readonly id: string;
  readonly rest: readonly string[];
}

/**
 * The longest command or topic at the start of the words, and the words after it. An alias is
 * replaced by its command.
 */
export function namedCommand(words: readonly string[]): NamedCommand {
  const [first = ''] = words;
  if (Object.hasOwn(aliases, first)) return { id: aliases[first]!, rest: words.slice(1) };
  let id = '';
  for (const [i, word] of words.entries()) {
    const longer = id === '' ? word : `${id}:${word}`;
    if (!Object.hasOwn(summaries, longer) && !Object.hasOwn(topics, longer))
      return { id, rest: words.slice(i) };
    id = longer;
  }
  return { id, rest: [] };
}

/**
 * The named command, with its subcommands for its help. All commands for `completion`, or if the
 * first word is a flag.
 */
export function wantedCommands(argv: readonly string[]): readonly CommandId[] {
  const [first = '-', ...rest] = argv;
  if (first.startsWith('-') || first === 'completion') return ids;
  if (first === 'help')
    return ['help', ...atOrBelow(namedCommand(rest.filter((it) => !it.startsWith('-'))).id)];
  return atOrBelow(namedCommand(argv).id);
}

function atOrBelow(named: string): CommandId[] {
  return ids.filter((id) => id === named || (named !== '' && id.startsWith(`${named}:`)));
}

/** As typed after `gateway`, without aliases. */
export function commandNames(): string[] {
  return [...ids, ...Object.keys(topics)].map((id) => id.replaceAll(':', ' '));
}

/**
 * The output of `gateway` without arguments. Topics are listed among the commands: to a user,
 * `migrate` is a command. Loads neither the command line library nor a command, which halves the
 * running time.
 *
 * @param width the width of the terminal in columns
 */
export function rootHelp(width = 80): string {
  const rows = Object.entries({ ...topics, ...summaries }).filter(([id]) => !id.includes(':'));
  const list = textTable(
    rows.sort(([a], [b]) => (a < b ? -1 : 1)),
    width - 2,
  ).replace(/^/gm, '  ');
  return [
    description,
    `VERSION\n  ${versionLine()}`,
    'USAGE\n  $ gateway [COMMAND]',
    `COMMANDS\n${list}`,
    'Run gateway <command> --help for details of a command.\n',
  ].join('\n\n');
}

export function versionLine(): string {
  return `gateway/${VERSION} ${process.platform}-${process.arch} node-${process.version}`;
}
