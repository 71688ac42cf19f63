import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from '@oclif/core/command';
import { Plugin, type Config } from '@oclif/core/config';
import type { SettingsTable } from '@gateway/core/config';
import { bashAddition } from './bash.js';
import { catalogOf, type CompletedCommand } from './catalog.js';
import { fishScript } from './fish.js';

export const shells = ['bash', 'zsh', 'fish', 'powershell'] as const;

/** The output files of oclif's generator, in the `autocomplete` folder of its cache folder. */
const files = {
  bash: 'functions/bash/gateway.bash',
  zsh: 'functions/zsh/_gateway',
  powershell: 'functions/powershell/gateway.ps1',
} as const;

/** Returns a completion script, which works without starting the gateway. */
export async function completionScript(
  shell: (typeof shells)[number],
  config: Config,
  rows: SettingsTable,
): Promise<string> {
  const catalog = catalogOf(config, rows);
  if (shell === 'fish') return fishScript(catalog);
  const script = await generatedScript(shell, config, catalog);
  if (shell === 'bash') return `${script}${bashAddition(catalog)}`;
  // zsh runs a script from `fpath` as a function body. With this ending, the script can also be
  // sourced.
  const either =
    '\nif [[ $funcstack[1] == _gateway ]]; then\n  _gateway\nelse\n  compdef _gateway gateway\nfi\n';
  return shell === 'zsh' ? script.replace(/\n_gateway\n$/, () => either) : script;
}

/**
 * Runs oclif's generator, a command that writes its script to the cache folder. A temporary folder
 * replaces the cache folder, and the catalog replaces the loaded commands.
 */
async function generatedScript(
  shell: keyof typeof files,
  config: Config,
  catalog: readonly CompletedCommand[],
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-completion-'));
  try {
    const plugin = new Plugin({
      name: '@oclif/plugin-autocomplete',
      root: dirname(fileURLToPath(import.meta.url)),
      type: 'core',
    });
    await plugin.load();
    const Create = await plugin.findCommand('autocomplete:create', { must: true });
    const topics = catalog.map(({ words, summary }) => ({
      name: words.join(':'),
      description: summary,
    }));
    const commands = catalog
      .filter(({ isTopic }) => !isTopic)
      .map((command) => asOclif(command, { withHelp: shell === 'bash' }));
    const shown = Object.create(config, {
      cacheDir: { value: folder },
      topics: { value: topics },
      getPluginsList: { value: () => [{ commands }] },
    }) as Config;
    // The class is declared as abstract, so `new` cannot be used.
    await (Reflect.construct(Create, [[], shown]) as Command).run();
    return await readFile(join(folder, 'autocomplete', files[shell]), 'utf8');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Converts a command for oclif's generator. `withHelp` is false for zsh and PowerShell, whose
 * generators add the help flag themselves.
 */
function asOclif(
  { words, summary, flags }: CompletedCommand,
  { withHelp }: { withHelp: boolean },
): object {
  const shown = flags.filter(({ name }) => withHelp || name !== 'help');
  const entries = shown.map(({ name, summary: of, takesValue, repeats, values }) => [
    name,
    {
      name,
      summary: of,
      type: takesValue ? 'option' : 'boolean',
      multiple: repeats,
      ...(values.length > 0 ? { options: values } : {}),
    },
  ]);
  return {
    id: words.join(':'),
    summary,
    aliases: [],
    flags: Object.fromEntries(entries) as object,
  };
}
