import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from '@oclif/core/command';
import { aliases } from '../app/command-index.js';
import { command, oneOf, optionalArgument, wrongUse } from '../app/gateway-command.js';

/** The output files of oclif's generator, in the `autocomplete` folder of its cache folder. */
const files = {
  bash: 'functions/bash/gateway.bash',
  zsh: 'functions/zsh/_gateway',
  powershell: 'functions/powershell/gateway.ps1',
} as const;
const shells = Object.keys(files) as (keyof typeof files)[];

export default command({
  description:
    'Prints a script that completes commands and flags, including the flags of installed plugins. Generate it again after ' +
    'an upgrade and after installing a plugin.',
  examples: [
    {
      description: 'bash, for this shell:',
      command: 'source <(gateway completion bash)',
    },
    'bash, for all new shells:\ngateway completion bash > ~/.local/share/bash-completion/completions/gateway',
    `zsh:\ngateway completion zsh > "\${fpath[1]}/_gateway"`,
    'PowerShell:\ngateway completion powershell >> $PROFILE',
  ],
  args: { shell: optionalArgument('bash, zsh or powershell.') },
  async run({ args, log, oclif }) {
    const shell = oneOf('the shell', args.shell, shells);
    if (!shell)
      throw wrongUse('gateway completion needs a shell', `give one of ${shells.join(', ')}`);
    const cacheDir = await mkdtemp(join(tmpdir(), 'gateway-completion-'));
    try {
      const { Plugin } = await import('@oclif/core/config');
      const plugin = new Plugin({
        name: '@oclif/plugin-autocomplete',
        root: dirname(fileURLToPath(import.meta.url)),
        type: 'core',
      });
      await plugin.load();
      const Create = await plugin.findCommand('autocomplete:create', { must: true });
      const commands = oclif.commands.filter(({ id }) => !Object.hasOwn(aliases, id));
      const config: unknown = Object.create(oclif, {
        cacheDir: { value: cacheDir },
        getPluginsList: { value: () => [{ commands }] },
      });
      // The class is declared as abstract, so `new` cannot be used.
      await (Reflect.construct(Create, [[], config]) as Command).run();
      log((await readFile(join(cacheDir, 'autocomplete', files[shell]), 'utf8')).trimEnd());
    } finally {
      await rm(cacheDir, { recursive: true, force: true });
    }
  },
});
