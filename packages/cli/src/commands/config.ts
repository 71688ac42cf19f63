import { presentConfig, presentOrigins } from '@gateway/core/config';
import { command, switchFlag } from '../app/gateway-command.js';

export default command({
  description:
    'Reads the settings as `server` and `agent` do: flags over environment variables over the configuration file over defaults. ' +
    'Starts nothing and opens no connections.',
  examples: [
    'gateway config',
    'gateway config --origins',
    'gateway config --config ./production.json',
  ],
  flags: {
    origins: switchFlag('Print the origin of each value.'),
    'show-secrets': switchFlag('Print secrets instead of masking them.'),
  },
  run({ flags, json, note, resolve }) {
    const resolved = resolve();
    const present = flags.origins ? presentOrigins : presentConfig;
    json(present(resolved, { showSecrets: flags['show-secrets'] }));
    for (const { sentence } of [...resolved.warnings, ...resolved.pluginProblems])
      note(`warning: ${sentence}`);
  },
});
