import { readLicence, unknownEntitlements } from '@gateway/core/plugins';
import { jsonFlag } from '../../answer-table.js';
import { GatewayCommand } from '../../gateway-command.js';
import { installation } from '../../installation.js';
import { licenceRecord, licenceText } from '../../licence-view.js';
import { settingFlags } from '../../setting-flags.js';
import { summaries } from '../../summaries.js';

export default class LicenseShow extends GatewayCommand {
  static override summary = summaries['license:show'];
  static override description =
    'Reads license_key and license_public_key as server and agent do, and needs no service. Exits 1 when a token is given that is not in force: the ' +
    'community licence applies then, and nothing stops.';
  static override examples = ['<%= config.bin %> license show', '<%= config.bin %> license show --json --license-key <token>'];
  static override baseFlags = settingFlags('license:show');
  static override flags = jsonFlag;

  async run(): Promise<void> {
    const { flags } = await this.given();
    const { config } = this.resolve(flags);
    const licence = readLicence({ token: config.license_key, publicKey: config.license_public_key });
    const record = licenceRecord(licence, unknownEntitlements(licence, installation().plugins));
    this.log(flags['json'] === true ? JSON.stringify(record, null, 2) : licenceText(record));
    if (licence.problem) this.exit(1);
  }
}
