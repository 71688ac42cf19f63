import { GatewayCommand, jsonFlag } from '../app/gateway-command.js';
import { installation } from '../app/installation.js';

export default class FeatureFlags extends GatewayCommand {
  static override description =
    'Shows the state of each flag and where it was set: --enable-feature-flag, GATEWAY_ENABLE_FEATURE_FLAG or the configuration ' +
    'file. Includes flags from the manifests of plugins; no plugin is loaded.';
  static override examples = [
    'gateway feature-flags',
    'gateway feature-flags --enable-feature-flag=pullmetrics --json',
  ];
  static override flags = jsonFlag;

  async run(): Promise<void> {
    const { flags } = await this.parse(FeatureFlags);
    const { flagStates } = await import('@gateway/core/plugins');
    const known = flagStates({ discovery: installation(), resolved: this.resolve(flags) });
    if (known.length === 0 && !flags.json)
      return this.logToStderr('No installed plugin declares a feature flag.');
    this.logTable(known, flags, [
      ['NAME', ({ name }) => name],
      ['STATE', ({ enabled }) => (enabled ? 'on' : 'off')],
      ['ORIGIN', (it) => it.origin],
      ['STABILITY', ({ stability }) => stability],
      ['DECLARED BY', ({ declared_by: by }) => by],
      ['SUMMARY', ({ summary }) => summary],
    ]);
  }
}
