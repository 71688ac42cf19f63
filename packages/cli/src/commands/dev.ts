import * as Flags from '@oclif/core/flags';
import type { FlagValues } from '@gateway/core/config';
import type { Discovery } from '@gateway/core/plugins';
import { importExtra } from '@gateway/core/process';
import { GatewayCommand, valueFlag } from '../app/gateway-command.js';
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

export default class Dev extends GatewayCommand {
  static override description =
    'For development, not for production. Starts server and agent on an embedded Postgres, with an SQS emulator and an inbox that ' +
    'receives and verifies the deliveries. State is kept in ./.gateway. The first start sends a sample message and follows it. ' +
    'Ctrl-C stops everything.';
  static override examples = [
    'gateway dev',
    'gateway dev --once',
    'gateway dev --kafka localhost:9092/orders',
    'gateway dev --fresh --port 8080',
  ];
  static override baseFlags = openFlags();
  static override flags = {
    once: Flags.boolean({
      summary: 'Send the sample, follow it, and exit: 0 if it was delivered and verified, else 1.',
    }),
    fresh: Flags.boolean({ summary: 'Delete the contents of ./.gateway first.' }),
    kafka: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: '<host:port/topic>',
      summary: 'Also read this Kafka topic. May be repeated.',
    }),
    port: valueFlag('<integer>', 'Port of the server. [default: 5005, or the next that is free]'),
    'agent-port': valueFlag(
      '<integer>',
      'Port of the agent. [default: 5008, or the next that is free]',
    ),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Dev);
    const { runDev } = await importExtra<DevPackage>('@gateway/dev', 'gateway dev');
    await runDev(flags, installation());
  }
}
