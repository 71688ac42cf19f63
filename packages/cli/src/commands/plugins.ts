import { isAbsolute, relative } from 'node:path';
import { answerTable } from '../output/table.js';
import { GatewayCommand, jsonFlag } from '../app/gateway-command.js';
import { installation } from '../app/installation.js';

export default class Plugins extends GatewayCommand {
  static override description =
    'Tells of each plugin whether it would become active with the settings as they are, or why not and what to do. No code of a plugin is loaded.';
  static override examples = [
    '<%= config.bin %> plugins',
    '<%= config.bin %> plugins --metrics-backend=pullmetrics --enable-feature-flag=pullmetrics',
    '<%= config.bin %> plugins --json',
  ];
  static override flags = jsonFlag;

  async run(): Promise<void> {
    const { flags } = await this.parse(Plugins);
    const resolved = this.resolve(flags);
    const [{ previewPlugins }, { licenceOf }] = await Promise.all([import('@gateway/core/plugins'), import('../app/installation.js')]);
    const table = previewPlugins({ discovery: installation(), resolved, licence: licenceOf(resolved.config) });
    this.log(
      answerTable(
        table,
        [
          ['NAME', ({ name }) => name],
          ['KIND', ({ kind }) => kind],
          ['VERSION', ({ version }) => version],
          ['STATE', ({ state }) => state],
          ['FROM', ({ from }) => (isAbsolute(from) ? relative('', from) || from : from)],
          ['WHY', ({ reason, fix }) => (reason ? `${reason}; ${fix}` : '')],
        ],
        { json: flags['json'] === true },
      ),
    );
  }
}
