import { VERSION } from '@gateway/core/process';
import { GatewayCommand } from '../app/gateway-command.js';

export default class Version extends GatewayCommand {
  static override description =
    'Prints the version of the gateway. `gateway --version` adds the platform and the version of Node.';
  static override examples = ['gateway version', 'gateway --version'];

  async run(): Promise<void> {
    await this.parse(Version);
    this.log(`gateway ${VERSION}`);
  }
}
