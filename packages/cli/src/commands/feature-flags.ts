import { GatewayCommand } from '../gateway-command.js';
import { installation } from '../installation.js';
import { settingFlags } from '../setting-flags.js';
import { summaries } from '../summaries.js';
import { textTable } from '../text-table.js';

export default class FeatureFlags extends GatewayCommand {
  static override summary = summaries['feature-flags'];
  static override examples = ['<%= config.bin %> feature-flags', '<%= config.bin %> feature-flags --enable-feature-flag=pullmetrics'];
  static override baseFlags = settingFlags('feature-flags');

  async run(): Promise<void> {
    const { flags } = await this.given();
    const { config, origins } = this.resolve(flags);
    const origin = origins.get('enable_feature_flag') ?? 'default';
    const rows = Object.entries(installation().flags).map(([name, { summary, stability, declaredBy }]) => {
      const on = config.enable_feature_flag.includes(name);
      return [name, on ? 'on' : 'off', on ? origin : 'default', stability, declaredBy, summary];
    });
    if (rows.length === 0) this.logToStderr('No installed plugin declares a feature flag.');
    else this.log(textTable([['NAME', 'STATE', 'ORIGIN', 'STABILITY', 'DECLARED BY', 'SUMMARY'], ...rows], process.stdout.columns));
  }
}
