import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from '@oclif/core/command';
import { Config } from '@oclif/core/config';
import type { PJSON } from '@oclif/core/interfaces';
import { settings } from '@oclif/core/settings';
import { VERSION } from '@gateway/core/process';
import { description } from './root-help.js';
import { summaries, topics, wantedCommands, type CommandId } from './command-index.js';
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
    additionalHelpFlags: ['-h'],
    commands: { strategy: 'explicit', target: './dist/app/oclif.js', identifier: 'commands' },
    helpClass: './dist/app/gateway-help.js',
    topics: Object.fromEntries(Object.entries(topics).map(([name, summary]) => [name, { description: summary }])),
  },
};

/** The commands that `loadCommands` has loaded, where oclif looks for them. */
export const commands: Record<string, Command.Class> = {};

/** Loads commands by their path, and gives each its summary and the flags of the settings. */
export async function loadCommands(ids: readonly CommandId[]): Promise<void> {
  const modules = await Promise.all(
    ids.map((id) => import(`../commands/${id.replaceAll(':', '/')}.js`) as Promise<{ default: Command.Class }>),
  );
  for (const [i, id] of ids.entries()) {
    const command = modules[i]!.default;
    command.summary = summaries[id];
    if (!Object.hasOwn(command, 'baseFlags')) command.baseFlags = settingFlags(id);
    commands[id] = command;
  }
}

/**
 * The commands as oclif sees them. Its configuration is here and not in a package.json, because the installation may be any folder.
 *
 * @param argv the command line: only the commands that it may be about are loaded; without one all are
 */
export async function loadOclif(argv: readonly string[] = []): Promise<Config> {
  await loadCommands(wantedCommands(argv));
  // The built files run, whatever NODE_ENV says.
  settings.enableAutoTranspile = false;
  return Config.load({
    root: dirname(dirname(dirname(fileURLToPath(import.meta.url)))),
    pjson,
    isRoot: true,
    ignoreManifest: true,
    devPlugins: false,
    userPlugins: false,
  });
}

/**
 * Runs a command, or shows help. It is `run` of oclif without its hooks, of which there are none, and without loading the configuration a
 * second time, so that help is there sooner.
 */
export async function runOclif(argv: readonly string[], config: Config): Promise<void> {
  const { getHelpFlagAdditions, normalizeArgv } = await import('@oclif/core/help');
  const flags = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv;
  const [id = '', ...rest] = normalizeArgv(config, [...argv]);
  const isTopic = config.findCommand(id) === undefined && config.findTopic(id) !== undefined;
  if ((isTopic && rest.length === 0) || flags.some((flag) => getHelpFlagAdditions(config).includes(flag))) {
    const { default: GatewayHelp } = await import('./gateway-help.js');
    return new GatewayHelp(config).showHelp(isTopic ? [id] : [...argv]);
  }
  // A flag between the words of a command would hide the rest of it: that is refused as if no word came before.
  await config.runCommand(isTopic ? rest.join(' ') : id, rest);
}
