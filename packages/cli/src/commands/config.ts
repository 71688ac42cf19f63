import * as Flags from '@oclif/core/flags';
import { presentConfig, presentOrigins } from '@gateway/core/config';
import { GatewayCommand } from '../app/gateway-command.js';

export default class Config extends GatewayCommand {
  static override description =
    'Reads the settings as `server` and `agent` do: flags over environment variables over the configuration file over defaults. ' +
    'Starts nothing and opens no connections.';
  static override examples = [
    'gateway config',
    'gateway config --origins',
    'gateway config --config ./production.json',
  ];
  static override flags = {
    origins: Flags.boolean({ summary: 'Print the origin of each value.' }),
    'show-secrets': Flags.boolean({ summary: 'Print secrets instead of masking them.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Config);
    const resolved = this.resolve(flags);
    const options = { showSecrets: flags['show-secrets'] === true };
    const shown = flags['origins']
      ? presentOrigins(resolved, options)
      : presentConfig(resolved, options);
    this.log(JSON.stringify(shown, null, 2));
    for (const { sentence } of [...resolved.warnings, ...resolved.pluginProblems])
      this.logToStderr(`warning: ${sentence}`);
  }
}
