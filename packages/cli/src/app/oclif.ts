import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from '@oclif/core/command';
import { Config } from '@oclif/core/config';
import type { PJSON } from '@oclif/core/interfaces';
import { settings } from '@oclif/core/settings';
import { VERSION } from '@gateway/core/process';
import {
  description,
  namedCommand,
  summaries,
  topics,
  wantedCommands,
  type CommandId,
} from './command-index.js';
import { requireCommand } from './failure.js';
import { settingFlags } from './setting-flags.js';

const pjson: PJSON = {
  name: 'gateway',
  version: VERSION,
  description,
  type: 'module',
  oclif: {
    bin: 'gateway',
    dirname: 'gateway',
    description,
    topicSeparator: ' ',
    commands: { strategy: 'explicit', target: './dist/app/oclif.js', identifier: 'commands' },
    helpClass: './dist/app/gateway-help.js',
    topics: Object.fromEntries(
      Object.entries(topics).map(([name, summary]) => [name, { description: summary }]),
    ),
  },
};

/** By id. oclif reads this export. */
export const commands: Record<string, Command.Class> = {};

/** Also sets their summaries and setting flags. */
export async function loadCommands(ids: readonly CommandId[]): Promise<void> {
  const modules = await Promise.all(
    ids.map(
      (id) =>
        import(`../commands/${id.replaceAll(':', '/')}.js`) as Promise<{ default: Command.Class }>,
    ),
  );
  for (const [i, id] of ids.entries()) {
    const command = modules[i]!.default;
    command.summary = summaries[id];
    if (!Object.hasOwn(command, 'baseFlags')) command.baseFlags = settingFlags(id);
    commands[id] = command;
  }
}

/**
 * Without a package.json, because the installation can be any folder.
 *
 * @param argv determines the commands to load
 */
export async function loadOclif(argv: readonly string[] = []): Promise<Config> {
  await loadCommands(wantedCommands(argv));
  // Otherwise, if NODE_ENV is `development` or `test`, oclif would look for TypeScript sources
  // instead of the built files.
  settings.enableAutoTranspile = false;
  const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
  return Config.load({
    root,
    pjson,
    isRoot: true,
    ignoreManifest: true,
    devPlugins: false,
    userPlugins: false,
  });
}

/**
 * Replaces oclif's `run`, which ends a command's name at a flag between its words and loads the
 * configuration twice. Throws `wrong_use` for an unknown command, and the command's own errors.
 */
export async function runOclif(argv: readonly string[], config: Config): Promise<void> {
  const { id, rest } = namedCommand(argv);
  const flags = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv;
  const isTopicAlone = Object.hasOwn(topics, id) && rest.length === 0;
  if (isTopicAlone || flags.includes('--help') || flags.includes('-h')) {
    const { default: GatewayHelp } = await import('./gateway-help.js');
    return new GatewayHelp(config).showHelp([...argv]);
  }
  requireCommand({ id, rest });
  await config.runCommand(id, [...rest]);
}
