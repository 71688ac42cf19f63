import { command } from '../../app/gateway-command.js';
import { installation } from '../../app/installation.js';

export default command({
  description:
    'Includes the settings of installed plugins. Editors complete and check a file that names the schema: { "$schema": ' +
    '"./gateway.schema.json" }.',
  examples: [
    'gateway config schema > gateway.schema.json',
    'gateway config schema --config ./production.json',
  ],
  async run({ json }) {
    const { configSchema } = await import('../../config/schema.js');
    json(configSchema(installation().rows));
  },
});
