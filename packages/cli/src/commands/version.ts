import { VERSION } from '@gateway/core/process';
import { command } from '../app/gateway-command.js';

export default command({
  description:
    'Prints the version of the gateway. `gateway --version` adds the platform and the version of Node.',
  examples: ['gateway version', 'gateway --version'],
  run: ({ log }) => log(`gateway ${VERSION}`),
});
