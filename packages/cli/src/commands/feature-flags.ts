import { command, jsonFlag } from '../app/gateway-command.js';
import { installation } from '../app/installation.js';

export default command({
  description:
    'Shows the state of each flag and where it was set: --enable-feature-flag, GATEWAY_ENABLE_FEATURE_FLAG or the configuration ' +
    'file. Includes flags from the manifests of plugins; no plugin is loaded.',
  examples: [
    'gateway feature-flags',
    'gateway feature-flags --enable-feature-flag=pullmetrics --json',
  ],
  flags: jsonFlag,
  async run({ flags, note, resolve, table }) {
    const { flagStates } = await import('@gateway/core/plugins');
    const known = flagStates({ discovery: installation(), resolved: resolve() });
    if (known.length === 0 && !flags.json)
      return note('No installed plugin declares a feature flag.');
    table(known, [
      ['NAME', 'name'],
      ['STATE', ({ enabled }) => (enabled ? 'on' : 'off')],
      ['ORIGIN', 'origin'],
      ['STABILITY', 'stability'],
      ['DECLARED BY', 'declared_by'],
      ['SUMMARY', 'summary'],
    ]);
  },
});
