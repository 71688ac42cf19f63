import type { Config } from '@oclif/core/config';
import type { SettingsTable } from '@gateway/core/config';
import { bashAddition } from './bash.js';
import { catalogOf } from './catalog.js';
import { fishScript } from './fish.js';
import { generatedScript } from './generated.js';

export const shells = ['bash', 'zsh', 'fish', 'powershell'] as const;

/** The completion script for a shell. It stands alone: what completes a line starts no gateway. */
export async function completionScript(shell: (typeof shells)[number], config: Config, rows: SettingsTable): Promise<string> {
  const catalog = catalogOf(config, rows);
  switch (shell) {
    case 'bash':
      return `${await generatedScript('bash', config, catalog)}${bashAddition(catalog)}`;
    case 'zsh':
      return loadable(await generatedScript('zsh', config, catalog));
    case 'fish':
      return fishScript(catalog);
    case 'powershell':
      return generatedScript('powershell', config, catalog);
  }
}

/** The generated script is for a folder of `fpath`, where it is the body of the function; this one may also be sourced. */
function loadable(script: string): string {
  return script.replace(/\n_gateway\n$/, '\nif [[ $funcstack[1] == _gateway ]]; then\n  _gateway\nelse\n  compdef _gateway gateway\nfi\n');
}
