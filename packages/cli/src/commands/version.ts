import { VERSION } from '@gateway/core/process';
import { GatewayCommand } from '../gateway-command.js';
import { settingFlags } from '../setting-flags.js';
import { summaries } from '../summaries.js';

export default class Version extends GatewayCommand {
  static override summary = summaries.version;
  static override description = 'The version of this gateway. `gateway --version` tells the platform and the version of Node beside it.';
  static override examples = ['<%= config.bin %> version', '<%= config.bin %> --version'];
  static override baseFlags = settingFlags('version');

  async run(): Promise<void> {
    await this.given();
    this.log(`gateway ${VERSION}`);
  }
}
