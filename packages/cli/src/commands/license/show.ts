import { readLicence, unknownEntitlements } from '@gateway/core/plugins';
import { GatewayCommand, jsonFlag } from '../../app/gateway-command.js';
import { installation } from '../../app/installation.js';
import { licenceRecord, licenceText } from '../../licence/view.js';

export default class LicenseShow extends GatewayCommand {
  static override description =
    'Reads license_key and license_public_key as server and agent do, and needs no service. Exits 1 when a token is given that is not in force: the ' +
    'community licence applies then, and nothing stops.';
  static override examples = ['<%= config.bin %> license show', '<%= config.bin %> license show --json --license-key <token>'];
  static override flags = jsonFlag;

  async run(): Promise<void> {
    const { flags } = await this.parse(LicenseShow);
    const { config } = this.resolve(flags);
    const licence = readLicence({ token: config.license_key, publicKey: config.license_public_key });
    const record = licenceRecord(licence, unknownEntitlements(licence, installation().plugins));
    this.log(flags['json'] === true ? JSON.stringify(record, null, 2) : licenceText(record));
    if (licence.problem) this.exit(1);
  }
}
