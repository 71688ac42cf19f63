import * as Flags from '@oclif/core/flags';
import { GatewayCommand } from '../../app/gateway-command.js';
import { installation } from '../../app/installation.js';

export default class ConfigCheck extends GatewayCommand {
  static override description =
    'Reads the settings as `server` and `agent` do, lists every problem with its origin, and exits with 1 if there is one. Prints ' +
    'warnings to standard error. Opens no connections and loads no plugin code.';
  static override examples = [
    'gateway config check',
    'gateway config check --config ./production.json',
    'gateway config check --json',
  ];
  static override flags = {
    json: Flags.boolean({
      summary: 'Print the problems as a JSON list of { key, origin, sentence }.',
    }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(ConfigCheck);
    const [{ checkConfig }, { GatewayError }] = await Promise.all([
      import('../../config/check.js'),
      import('@gateway/core/errors'),
    ]);
    const { file, given, problems, warnings, plugins } = checkConfig(
      this.configOptions(flags),
      installation(),
    );
    for (const { sentence } of warnings) this.logToStderr(`warning: ${sentence}`);
    if (flags['json'] === true) {
      this.log(JSON.stringify(problems, null, 2));
      if (problems.length > 0) this.exit(1);
      return;
    }
    if (problems.length > 0) throw new GatewayError('invalid_settings', { problems });
    this.log(
      `ok: ${given} ${given === 1 ? 'setting' : 'settings'} given, ${file ? `with those of ${file}` : 'no configuration file'}`,
    );
    for (const { kind, name, state, reason } of plugins) {
      this.log(
        `ok: the ${kind} plugin ${name} ${state === 'active' ? 'becomes active' : `stays inactive: ${reason}`}`,
      );
    }
  }
}
