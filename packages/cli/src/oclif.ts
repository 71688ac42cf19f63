import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Config } from '@oclif/core/config';
import type { PJSON } from '@oclif/core/interfaces';
import { settings } from '@oclif/core/settings';
import { VERSION } from '@gateway/core/version';
import { description } from './root-help.js';
import { topics } from './summaries.js';

const pjson: PJSON = {
  name: 'gateway',
  version: VERSION,
  description,
  type: 'module',
  oclif: {
    bin: 'gateway',
    dirname: 'gateway',
    description,
    topicSeparator: ' ',
    additionalHelpFlags: ['-h'],
    commands: { strategy: 'explicit', target: './dist/command-table.js', identifier: 'commands' },
    helpClass: './dist/gateway-help.js',
    topics: Object.fromEntries(Object.entries(topics).map(([name, summary]) => [name, { description: summary }])),
  },
};

/** The commands as oclif sees them. Its configuration is here and not in a package.json, because the installation may be any folder. */
export async function loadOclif(): Promise<Config> {
  // The built files run, whatever NODE_ENV says.
  settings.enableAutoTranspile = false;
  return Config.load({
    root: dirname(dirname(fileURLToPath(import.meta.url))),
    pjson,
    isRoot: true,
    ignoreManifest: true,
    devPlugins: false,
    userPlugins: false,
  });
}
