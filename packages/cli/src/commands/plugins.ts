import { isAbsolute, relative } from 'node:path';
import { GatewayCommand, jsonFlag } from '../app/gateway-command.js';
import { installation, licenceOf } from '../app/installation.js';

export default class Plugins extends GatewayCommand {
  static override description =
    'Shows whether each plugin would become active with the current settings, and if not, why and how to fix it. Active plugins are ' +
    'imported, but not started.';
  static override examples = [
    'gateway plugins',
    'gateway plugins --metrics-backend=pullmetrics --enable-feature-flag=pullmetrics',
    'gateway plugins --json',
  ];
  static override flags = jsonFlag;

  async run(): Promise<void> {
    const { flags } = await this.parse(Plugins);
    const resolved = this.resolve(flags);
    const { importedPlugins } = await import('@gateway/core/plugins');
    const table = await importedPlugins({
      discovery: installation(),
      resolved,
      licence: licenceOf(resolved.config),
    });
    this.logTable(table, flags, [
      ['NAME', ({ name }) => name],
      ['KIND', ({ kind }) => kind],
      ['VERSION', ({ version }) => version],
      ['STATE', ({ state }) => state],
      ['FROM', ({ from }) => (isAbsolute(from) ? relative('', from) || from : from)],
      ['WHY', ({ reason, fix }) => (reason ? `${reason}; ${fix}` : '')],
    ]);
  }
}
