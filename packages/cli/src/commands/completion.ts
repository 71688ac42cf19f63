import * as Args from '@oclif/core/args';
import { oneOf, wrongUse } from '../app/flag-values.js';
import { GatewayCommand } from '../app/gateway-command.js';
import { installation } from '../app/installation.js';

export default class Completion extends GatewayCommand {
  static override description =
    'Prints a script that completes commands, flags and values, including the flags of installed plugins. Generate it again after ' +
    'an upgrade and after installing a plugin.';
  static override examples = [
    {
      description: 'bash, for this shell:',
      command: 'source <(<%= config.bin %> completion bash)',
    },
    'bash, for all new shells:\n<%= config.bin %> completion bash > ~/.local/share/bash-completion/completions/gateway',
    `zsh:\n<%= config.bin %> completion zsh > "\${fpath[1]}/_gateway"`,
    'fish:\n<%= config.bin %> completion fish > ~/.config/fish/completions/gateway.fish',
    'PowerShell:\n<%= config.bin %> completion powershell >> $PROFILE',
  ];
  static override args = {
    shell: Args.string({ ignoreStdin: true, description: 'bash, zsh, fish or powershell.' }),
  };

  async run(): Promise<void> {
    const { args } = await this.parse(Completion);
    const { completionScript, shells } = await import('../completion/script.js');
    const shell = oneOf('the shell', args.shell, shells);
    if (!shell)
      throw wrongUse('gateway completion needs a shell', `give one of ${shells.join(', ')}`);
    this.log((await completionScript(shell, this.config, installation().rows)).trimEnd());
  }
}
