import type { FlagValues } from '@gateway/core/config';
import type { Discovery } from '@gateway/core/plugins';
import { importExtra } from '@gateway/core/process';
import { command, listFlag, switchFlag, valueFlag } from '../app/gateway-command.js';
import { installation } from '../app/installation.js';
import { settingFlags } from '../app/setting-flags.js';
import { isFixed } from '../config/dev-settings.js';

/** The package `@gateway/dev`. */
interface DevPackage {
  runDev(flags: FlagValues, discovery: Discovery): Promise<void>;
}

function openFlags() {
  const rows = Object.fromEntries(
    Object.entries(installation().rows).filter(([key]) => !isFixed(key)),
  );
  const { config: _, ...flags } = settingFlags('dev', rows);
  return flags;
}

export default command({
  description:
    'For development, not for production. Starts server and agent on an embedded Postgres, with an SQS emulator and an inbox that ' +
    'receives and verifies the deliveries. State is kept in ./.gateway. The first start sends a sample message and follows it. ' +
    'Ctrl-C stops everything.',
  examples: [
    'gateway dev',
    'gateway dev --once',
    'gateway dev --kafka localhost:9092/orders',
    'gateway dev --fresh --port 8080',
  ],
  baseFlags: openFlags(),
  flags: {
    once: switchFlag(
      'Send the sample, follow it, and exit: 0 if it was delivered and verified, else 1.',
    ),
    fresh: switchFlag('Delete the contents of ./.gateway first.'),
    kafka: listFlag('<host:port/topic>', 'Also read this Kafka topic. May be repeated.'),
    port: valueFlag('<integer>', 'Port of the server. [default: 5005, or the next that is free]'),
    'agent-port': valueFlag(
      '<integer>',
      'Port of the agent. [default: 5008, or the next that is free]',
    ),
  },
  async run({ flags }) {
    const { runDev } = await importExtra<DevPackage>('@gateway/dev', 'gateway dev');
    await runDev(flags, installation());
  },
});
