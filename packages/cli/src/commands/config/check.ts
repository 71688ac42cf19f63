import { command, switchFlag } from '../../app/gateway-command.js';
import { installation } from '../../app/installation.js';
import { counted } from '../../output/table.js';

export default command({
  description:
    'Reads the settings as `server` and `agent` do, lists every problem with its origin, and exits with 1 if there is one. Prints ' +
    'warnings to standard error. Opens no connections and loads no plugin code.',
  examples: [
    'gateway config check',
    'gateway config check --config ./production.json',
    'gateway config check --json',
  ],
  flags: {
    json: switchFlag('Print the problems as a JSON list of { key, origin, sentence }.'),
  },
  async run({ flags, exit, json, log, note, options }) {
    const [{ checkConfig }, { GatewayError }] = await Promise.all([
      import('../../config/check.js'),
      import('@gateway/core/errors'),
    ]);
    const { file, given, problems, warnings, plugins } = checkConfig(options(), installation());
    for (const { sentence } of warnings) note(`warning: ${sentence}`);
    if (flags.json) {
      json(problems);
      if (problems.length > 0) exit(1);
      return;
    }
    if (problems.length > 0) throw new GatewayError('invalid_settings', { problems });
    log(
      `ok: ${counted(given, 'setting')} given, ${file ? `with those of ${file}` : 'no configuration file'}`,
    );
    for (const { kind, name, state, reason } of plugins)
      log(
        `ok: the ${kind} plugin ${name} ${state === 'active' ? 'becomes active' : `stays inactive: ${reason}`}`,
      );
  },
});
