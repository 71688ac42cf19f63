import { isAbsolute, relative } from 'node:path';
import { command, jsonFlag } from '../app/gateway-command.js';
import { installation, licenceOf } from '../app/installation.js';

export default command({
  description:
    'Shows whether each plugin would become active with the current settings, and if not, why and how to fix it. Active plugins are ' +
    'imported, but not started.',
  examples: [
    'gateway plugins',
    'gateway plugins --metrics-backend=pullmetrics --enable-feature-flag=pullmetrics',
    'gateway plugins --json',
  ],
  flags: jsonFlag,
  async run({ resolve, table }) {
    const resolved = resolve();
    const { importedPlugins } = await import('@gateway/core/plugins');
    const plugins = await importedPlugins({
      discovery: installation(),
      resolved,
      licence: licenceOf(resolved.config),
    });
    table(plugins, [
      ['NAME', 'name'],
      ['KIND', 'kind'],
      ['VERSION', 'version'],
      ['STATE', 'state'],
      ['FROM', ({ from }) => (isAbsolute(from) ? relative('', from) || from : from)],
      ['WHY', ({ reason, fix }) => (reason ? `${reason}; ${fix}` : '')],
    ]);
  },
});
